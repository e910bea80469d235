package sqltest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/fence"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestOnceCommitsOne lets many runs of one tick commit their effect, and counts the effects. Some
// runs fail after they were accepted; in every other tick the first accepted run fails.
func TestOnceCommitsOne(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		const runs, ticks = 12, 10
		oops := errors.New("oops")
		var done atomic.Int64
		effect := func(tick, run int) {
			err := d.in(t.Context(), nil, func(tx *sql.Tx) error {
				if err := d.guard.Once(t.Context(), tx, "report", noon.Add(time.Duration(tick)*time.Millisecond), 0); err != nil {
					return err
				}
				if err := d.note(t.Context(), tx, int64(tick+1)); err != nil || run%3 > 0 {
					return err
				}
				return oops
			})
			if errors.Is(err, fence.ErrDone) {
				done.Add(1)
			} else if err != nil && !errors.Is(err, oops) {
				t.Error(err)
			}
		}
		for tick := range ticks {
			var all sync.WaitGroup
			for run := range runs {
				if run == 1 && tick%2 == 1 {
					all.Wait()
				}
				all.Go(func() { effect(tick, run) })
			}
			all.Wait()
		}
		if effects, err := d.log(t.Context()); err != nil || fmt.Sprint(effects) != "[1 2 3 4 5 6 7 8 9 10]" || done.Load() == 0 {
			t.Errorf("effects of ticks %v, %v, %d were answered that it is done; want one of each", effects, err, done.Load())
		}
	})
}

// TestOnceTellsApart: records that differ in the job, the tick or the shard are different records.
func TestOnceTellsApart(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for _, again := range []bool{false, true} {
			for _, job := range []string{"a", "A", "a ", "b'; --"} {
				for _, tick := range []time.Time{noon, noon.Add(time.Millisecond), noon.Add(-time.Hour), time.UnixMilli(-1)} {
					for _, shard := range []int{0, 1, 1<<31 - 1} {
						err := d.in(t.Context(), nil, func(tx *sql.Tx) error {
							return d.guard.Once(t.Context(), tx, job, tick.In(time.FixedZone("X", 3600)), shard)
						})
						if errors.Is(err, fence.ErrDone) != again || err != nil && !again {
							t.Errorf("%q %s %d, again %t: %v", job, tick, shard, again, err)
						}
					}
				}
			}
		}
	})
}

func TestForget(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		note := func(tick time.Time) error {
			return d.in(ctx, nil, func(tx *sql.Tx) error { return d.guard.Once(ctx, tx, "report", tick, 0) })
		}
		for _, tick := range []time.Time{noon, noon.Add(time.Millisecond), noon.Add(time.Hour)} {
			if err := note(tick); err != nil {
				t.Fatal(err)
			}
		}
		err := d.in(ctx, nil, func(tx *sql.Tx) error {
			n, err := d.guard.Forget(ctx, tx, noon.Add(time.Millisecond))
			if n != 1 {
				t.Errorf("forgot %d, want the one before", n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if err := note(noon); err != nil {
			t.Errorf("a tick that was forgotten: %v", err)
		}
		if err := note(noon.Add(time.Millisecond)); !errors.Is(err, fence.ErrDone) {
			t.Errorf("a tick that was kept: %v", err)
		}
	})
}

func TestDrop(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		show := func(name string, token int64) error { return d.guard.Store(d.DB).Check(ctx, name, token) }
		drop := func(before time.Time) (n int64) {
			err := d.in(ctx, nil, func(tx *sql.Tx) (err error) {
				n, err = d.guard.Drop(ctx, tx, before)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if err := errors.Join(show("old", 9), show("new", 9)); err != nil {
			t.Fatal(err)
		}
		d.must(t, "UPDATE <t> SET seen = seen - 7200 WHERE fence = 'old'")
		if n := drop(time.Now().Add(-time.Hour)); n != 1 {
			t.Errorf("dropped %d, want the old one: is seen in seconds of the database's clock?", n)
		}
		if err := show("old", 1); err != nil {
			t.Errorf("a fence that was dropped: %v", err)
		}
		if err := show("new", 8); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a fence that was kept: %v", err)
		}
		if n := drop(time.Now().Add(time.Hour)); n != 2 {
			t.Errorf("dropped %d, want both", n)
		}
	})
}

func TestUpdatedRows(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		d.must(t, "INSERT INTO <t>_rows (id, body) VALUES (1, '')")
		save := func(id int, token int64, body, only string) error {
			return d.in(ctx, nil, func(tx *sql.Tx) error {
				res, err := tx.ExecContext(ctx, d.say("UPDATE <t>_rows SET body = ?, fence = ? WHERE id = ? AND fence <= ?"+only), body, token, id, token)
				if err != nil {
					return err
				}
				return fence.Updated(res, "rows", token, func() *sql.Row {
					return tx.QueryRowContext(ctx, d.say("SELECT fence FROM <t>_rows WHERE id = ?"), id)
				})
			})
		}
		for i, c := range []struct {
			id    int
			token int64
			only  string
			want  string
		}{
			{1, 5, "", "<nil>"}, {1, 5, "", "<nil>"}, {1, 9, "", "<nil>"},
			{1, 8, "", "stale token 8: the guard has seen 9"},
			{1, 9, " AND 1 = 0", "the row's token is 9: check the other conditions"},
			{2, 9, "", sql.ErrNoRows.Error()},
		} {
			if err := save(c.id, c.token, fmt.Sprint(c.token), c.only); !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("step %d: %v, want %s", i, err, c.want)
			}
		}
		var body string
		if err := d.QueryRowContext(ctx, d.say("SELECT body FROM <t>_rows")).Scan(&body); err != nil || body != "9" {
			t.Errorf("the row holds %q, %v", body, err)
		}
	})
}

// PostgreSQL's schemas, SQLite's main: a name with a dot in it works in both tables.
func TestTableInSchema(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		schema := "main"
		if d.dialect == fence.Postgres {
			schema = "app_" + d.table // one server for all tests, and for -count
			d.must(t, "CREATE SCHEMA "+schema)
		}
		g, err := fence.NewSQL(d.dialect, schema+".Fences")
		if err != nil {
			t.Fatal(err)
		}
		d.must(t, g.Schema())
		for _, want := range []error{nil, fence.ErrDone} {
			err := d.in(t.Context(), nil, func(tx *sql.Tx) error {
				return errors.Join(g.Check(t.Context(), tx, "a", 1), g.Once(t.Context(), tx, "a", noon, 0))
			})
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}
