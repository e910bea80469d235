package sqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// ledger is where the examples keep their money.
func ledger() (*sql.DB, *fence.SQL) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	guard, err := fence.NewSQL(fence.SQLite, "fences")
	if err != nil {
		panic(err)
	}
	_, err = db.ExecContext(context.Background(), guard.Schema()+`
		CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0);
		INSERT INTO accounts (id, balance) VALUES (7, 100)`)
	if err != nil {
		panic(err)
	}
	return db, guard
}

// The claim comes first, before anything is read; the effect commits with it.
func Example_sideTable() {
	db, guard := ledger()
	defer db.Close()
	ctx := context.Background()

	withdraw := func(token locking.Token, amount int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if err := guard.Check(ctx, tx, "account:7", token); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - ? WHERE id = 7", amount); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println("new holder:", withdraw(34, 10))
	err := withdraw(33, 10)
	fmt.Println("late holder refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// new holder: <nil>
	// late holder refused: true
}

// A row that has its fence in a column of its own needs no second table.
func Example_column() {
	db, _ := ledger()
	defer db.Close()
	ctx := context.Background()

	set := func(id int, token locking.Token, balance int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		res, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2", balance, token, id)
		if err != nil {
			return err
		}
		err = fence.Updated(res, fmt.Sprint("account:", id), token, func() *sql.Row {
			return tx.QueryRowContext(ctx, "SELECT fence FROM accounts WHERE id = ?", id)
		})
		if err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println("new holder:", set(7, 34, 90))
	var stale *fence.StaleError
	if err := set(7, 33, 80); errors.As(err, &stale) {
		fmt.Println("late holder, after", stale.Max)
	}
	fmt.Println("no such row:", errors.Is(set(8, 34, 90), sql.ErrNoRows))
	// Output:
	// new holder: <nil>
	// late holder, after 34
	// no such row: true
}

// Two runs of one tick: one effect. In a job, take the three from its run:
// run.Job(), run.Tick(), run.Shard().
func Example_oncePerTick() {
	db, guard := ledger()
	defer db.Close()
	ctx := context.Background()
	tick := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	pay := func() error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		err = guard.Once(ctx, tx, "pay-interest", tick, 0)
		if errors.Is(err, fence.ErrDone) {
			fmt.Println("paid already")
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + 1 WHERE id = 7"); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(pay(), pay())
	var balance int
	err := db.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE id = 7").Scan(&balance)
	fmt.Println(balance, err)
	// Output:
	// paid already
	// <nil> <nil>
	// 101 <nil>
}
