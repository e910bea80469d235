package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A run that was granted ahead is handed back when the node does not believe Redis' clock, even if it believes the clock again at once: it
// is not started before its tick is due. With a clock that is believed it starts then.
func TestGrantedAheadOfAClockThatIsNotBelieved(t *testing.T) {
	for name, believed := range map[string]bool{"believed": true, "not believed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var looks, called atomic.Int64
				redis := &settled{keeper: locking.NewKeeper(noRenewals{}, locking.KeeperConfig{})}
				r := New(Config{
					Values: t.Context(), Now: time.Now, Past: time.Now, Active: &ActiveRuns{}, Redis: redis, Listener: nobody{}, Machine: well{}, Log: slog.New(slog.DiscardHandler),
					Usable: func() error {
						if looks.Add(1) == 1 && !believed {
							return errors.New("the clock has stepped")
						}
						return nil
					},
				})
				ctx, stop := context.WithCancel(t.Context())
				go r.Run(ctx)
				job := &work.Job{Job: jobs.Job{Name: "quick", TTL: time.Minute, Func: func(context.Context, *jobs.Run) error { called.Add(1); return nil }}}
				due := time.Now().Add(500 * time.Millisecond)
				r.Start(work.Grant{
					Job: job, Lease: ledger.Run{Job: "quick", ID: "a-1", Token: 7}, FirstTTL: 9 * time.Second, FirstSent: time.Now(), StartAt: due.UnixMilli(),
				})
				synctest.Wait()
				if n := called.Load(); n != 0 {
					t.Errorf("called %d times before its tick was due", n)
				}
				if active := r.Active.some(); active != believed {
					t.Errorf("before its tick is due: kept %t, want %t", active, believed)
				}
				time.Sleep(600 * time.Millisecond)
				if n := called.Load(); (n == 1) != believed {
					t.Errorf("called %d times", n)
				}
				stop()
			})
		})
	}
}
