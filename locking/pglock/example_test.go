package pglock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@db.internal/app?connect_timeout=2")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	cfg := pglock.Config{Listen: pool.Config().ConnConfig} // behind pgbouncer: pgx.ParseConfig of the server's own address
	if err := pglock.Migrate(ctx, pool, cfg); err != nil {
		log.Fatal(err)
	}
	locker := pglock.New(pool, cfg)
	defer locker.Close()

	lease, err := locker.Acquire(ctx, "order:42", locking.Options{TTL: 10 * time.Second, Wait: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Release(ctx) }()
	_, err = pool.Exec(lease.Context(), "UPDATE orders SET paid = true, fence = $1 WHERE id = 42 AND fence <= $1", lease.Token())
	fmt.Println(err)
}
