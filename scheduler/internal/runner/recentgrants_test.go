package runner

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A pending run that a sweep reported although it was granted already is claimed once more, and the
// same node gets the same grant. When the answer came after the run had ended, the function was
// called once more. Another grant of the run, under another token, is begun.
func TestGrantThatArrivesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := &settled{keeper: locking.NewKeeper(noRenewals{}, locking.KeeperConfig{})}
		r := New(Config{
			Values: t.Context(), Now: time.Now, Past: time.Now, Usable: func() error { return nil }, Active: &ActiveRuns{}, Redis: redis, Listener: nobody{}, Machine: well{}, Log: slog.New(slog.DiscardHandler),
		})
		called := 0
		job := &work.Job{Job: jobs.Job{Name: "quick", TTL: time.Minute, Func: func(context.Context, *jobs.Run) error { called++; return nil }}}
		grant := work.Grant{Job: job, Lease: ledger.Run{Job: "quick", ID: "hand-0", Token: 7}, FirstTTL: 5 * time.Second, WasPending: true}
		begin := func(g work.Grant) bool {
			g.FirstSent = time.Now()
			begun := r.Start(g)
			synctest.Wait() // until it has ended, and is settled
			return begun
		}
		if !begin(grant) || begin(grant) || called != 1 {
			t.Errorf("heard of twice, it was called %d times", called)
		}
		if time.Sleep(recentFor + time.Second); begin(grant) || called != 1 {
			t.Error("it was begun once more a minute later")
		}
		if grant.Lease.Token++; !begin(grant) || called != 2 {
			t.Error("granted once more, it was not begun")
		}
	})
}

// settled is a Redis that takes every report at once.
type settled struct{ keeper *locking.Keeper }

func (s *settled) Hold(parent context.Context, _ int, g locking.Grant) *locking.Lease {
	return s.keeper.Hold(parent, g)
}
func (*settled) Begins(work.Grant) bool { return true }
func (*settled) Settle(_ work.Grant, r settle.Report, then work.SettleListener) {
	then.Settled(r, settle.Settled, nil)
}
func (*settled) Tail(context.Context, int, []settle.Tail) error         { return nil }
func (*settled) Save(context.Context, ledger.Run, string, []byte) error { return nil }
func (*settled) Saved(context.Context, ledger.Run) (string, []byte, error) {
	return "", nil, nil
}
func (*settled) HandBack(work.Grant, func() bool) (over func()) { return func() {} }

// well is a machine on which runs begin.
type well struct{}

func (well) Suspend(error, time.Time) time.Duration { return 0 }
func (well) Began(time.Time) bool                   { return false }

// noRenewals never renews: no run is so long.
type noRenewals struct{}

func (noRenewals) Renew(context.Context, []locking.Renewal) ([]locking.RenewAnswer, error) {
	panic("a run was renewed")
}

// nobody is a listener without effects.
type nobody struct{}

func (nobody) Claimed(ledger.Run)                      {}
func (nobody) Started(ledger.Run, time.Time)           {}
func (nobody) LeaseLost(ledger.Run, time.Time)         {}
func (nobody) Stalled(ledger.Run, time.Time)           {}
func (nobody) Settled(ledger.Run, settle.Report, bool) {}
