package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// attempts collects the tries of a job.
type attempts struct {
	mu   sync.Mutex
	runs []*jobs.Run
	at   []time.Time
}

func (a *attempts) note(r *jobs.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs, a.at = append(a.runs, r), append(a.at, time.Now())
}

// trier is a job of each minute whose n-th try ends as f says.
func (a *attempts) trier(retry jobs.Retry, f func(ctx context.Context, try int) error) jobs.Job {
	return jobs.Job{Name: "job", Schedule: "@every 1m", TTL: 5 * time.Second, Retry: retry, Func: func(ctx context.Context, r *jobs.Run) error {
		a.note(r)
		r.SetOutput([]byte(fmt.Sprint("output of try ", r.Try())))
		return f(ctx, r.Try())
	}}
}

// kept is the output that the ledger keeps of a run.
func (c *cluster) kept(job, run string) string {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	l, err := ledger.Open(context.Background(), client, ledger.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	output, _, err := l.Kept(context.Background(), job, run)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(output)
}

// A run fails four times and succeeds: one run, one token, the waits as they follow from its id, and the
// lease of 5 s is kept meanwhile.
func TestRetriesAreOneRun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		retry := jobs.Retry{Max: 4, Backoff: time.Second, MaxBackoff: 3 * time.Second}
		c.start("a", scheduler.Config{}, a.trier(retry, func(_ context.Context, try int) error {
			time.Sleep(100 * time.Millisecond)
			if try < 5 {
				return errors.New("not yet")
			}
			return nil
		}))
		time.Sleep(80 * time.Second)
		synctest.Wait() // what the functions noted is read below
		if len(a.runs) != 5 {
			t.Fatalf("%d tries, want 5", len(a.runs))
		}
		for i, r := range a.runs {
			if r.Try() != i+1 || r.Attempt() != 1 || r.ID() != a.runs[0].ID() || r.Token() != a.runs[0].Token() {
				t.Errorf("try %d is try %d of attempt %d of run %s, token %d", i+1, r.Try(), r.Attempt(), r.ID(), r.Token())
			}
			if i == 0 {
				continue
			}
			want := 100*time.Millisecond + scheduler.RetryWait(r.ID(), retry, i)
			if got := a.at[i].Sub(a.at[i-1]); got != want {
				t.Errorf("try %d began %s after the one before, want %s", i+1, got, want)
			}
		}
		row := c.runs("job")[0]
		if row.Outcome != "succeeded" || row.Tries != 5 || row.Error != "" {
			t.Errorf("recorded %s after %d tries, error %q", row.Outcome, row.Tries, row.Error)
		}
		if got := c.kept("job", row.Run); got != "output of try 5" {
			t.Errorf("output %q, want the last try's", got)
		}
	})
}

func TestLastErrorComesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		c.start("a", scheduler.Config{}, a.trier(jobs.Retry{Max: 2}, func(_ context.Context, try int) error {
			return fmt.Errorf("no paper in tray %d\nnor elsewhere", try)
		}))
		time.Sleep(70 * time.Second)
		synctest.Wait() // what the functions noted is read below
		want := "no paper in tray 3\nnor elsewhere; before: try 1: no paper in tray 1; try 2: no paper in tray 2"
		if row := c.runs("job")[0]; row.Outcome != "failed" || row.Tries != 3 || row.Error != want {
			t.Errorf("recorded %s after %d tries: %q, want %q", row.Outcome, row.Tries, row.Error, want)
		}
	})
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		c.start("a", scheduler.Config{}, a.trier(jobs.Retry{Max: 5}, func(_ context.Context, try int) error {
			if try == 2 {
				return fmt.Errorf("print: %w", jobs.Permanent(errors.New("no such printer")))
			}
			return errors.New("no paper")
		}))
		time.Sleep(100 * time.Second)
		synctest.Wait() // what the functions noted is read below
		want := "print: no such printer; before: try 1: no paper"
		if row := c.runs("job")[0]; row.Outcome != "failed" || row.Tries != 2 || row.Error != want {
			t.Errorf("recorded %s after %d tries: %q, want %q", row.Outcome, row.Tries, row.Error, want)
		}
	})
}

// The timeout counts from the first try and over the waits.
func TestTimeoutCoversAllTries(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var waiting, calling attempts
		idle := waiting.trier(jobs.Retry{Max: 5, Backoff: time.Minute}, func(context.Context, int) error { return errors.New("no paper") })
		idle.Name, idle.Timeout = "waiting", 5*time.Second
		busy := calling.trier(jobs.Retry{Max: 50, Backoff: 10 * time.Millisecond}, func(ctx context.Context, _ int) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(1900 * time.Millisecond):
				return errors.New("no ink")
			}
		})
		busy.Name, busy.Timeout = "calling", 5*time.Second
		c.start("a", scheduler.Config{}, idle, busy)
		time.Sleep(75 * time.Second)
		synctest.Wait() // what the functions noted is read below
		for name, want := range map[string]struct {
			tries int
			text  string
		}{
			"waiting": {1, "no paper"},
			"calling": {3, jobs.ErrTimeout.Error() + "; before: try 1: no ink; try 2: no ink"},
		} {
			row := c.runs(name)[0]
			if row.Outcome != "timed_out" || row.Tries != want.tries || row.Error != want.text {
				t.Errorf("%s: recorded %s after %d tries: %q", name, row.Outcome, row.Tries, row.Error)
			}
			if row.DurationMS != 5000 {
				t.Errorf("%s: ended after %d ms, want 5000", name, row.DurationMS)
			}
		}
	})
}

// While the node drains, a wait goes on like a function, and ends with the drain time.
func TestRetriesInADrain(t *testing.T) {
	for name, c := range map[string]struct {
		backoff, took time.Duration
		outcome       string
	}{
		"the next try comes in time": {2 * time.Second, 2 * time.Second, "succeeded"},
		"it would come too late":     {time.Minute, 5 * time.Second, "cancelled(draining)"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cl *cluster, _ *redistest.Embedded) {
				var a attempts
				n := cl.start("a", scheduler.Config{DrainTimeout: 5 * time.Second}, a.trier(jobs.Retry{Max: 1, Backoff: c.backoff}, func(_ context.Context, try int) error {
					if try == 1 {
						return errors.New("no paper")
					}
					return nil
				}))
				time.Sleep(60*time.Second + 100*time.Millisecond)
				began := time.Now()
				cl.leave(n)
				if took := time.Since(began); took > c.took+100*time.Millisecond || took < c.took/3 {
					t.Errorf("drain took %s, want about %s", took, c.took)
				}
				if got := outcomes(cl.runs("job")); got[c.outcome] != 1 || len(got) != 1 {
					t.Errorf("history %v, want %s", got, c.outcome)
				}
			})
		})
	}
}

func TestRetryWait(t *testing.T) {
	retry := jobs.Retry{Max: 100, Backoff: 100 * time.Millisecond, MaxBackoff: 24 * time.Hour}
	seen := make(map[time.Duration]bool)
	for try := range 100 {
		full := retry.MaxBackoff
		if try < 20 {
			full = retry.Backoff << try
		}
		got := scheduler.RetryWait("run", retry, try+1)
		if got > full || got <= full/2 {
			t.Errorf("wait %s after try %d, want more than half of %s, and not more than it", got, try+1, full)
		}
		if got != scheduler.RetryWait("run", retry, try+1) || got == scheduler.RetryWait("other", retry, try+1) {
			t.Errorf("the wait after try %d does not follow from the run", try+1)
		}
		seen[got] = true
	}
	if len(seen) < 99 {
		t.Errorf("%d different waits of 100: no jitter at the limit", len(seen))
	}
	if got := scheduler.RetryWait("run", jobs.Retry{Backoff: 1, MaxBackoff: 1}, 1); got != 1 {
		t.Errorf("of a wait of 1 ns is left %s", got)
	}
}

// What the ledger keeps, 2 KiB, holds the last error and the newest of the others.
func TestErrorTextsKeepTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		c.start("a", scheduler.Config{}, a.trier(jobs.Retry{Max: 60, Backoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond}, func(_ context.Context, try int) error {
			return fmt.Errorf("%d %s", try, strings.Repeat("é", 200))
		}))
		time.Sleep(70 * time.Second)
		synctest.Wait() // what the functions noted is read below
		row := c.runs("job")[0]
		before := strings.Split(strings.SplitN(row.Error, "; before: ", 2)[1], "; ")
		if !strings.HasPrefix(row.Error, "61 "+strings.Repeat("é", 200)+"; before: ") || len(row.Error) > 2048 || len(row.Error) < 1800 {
			t.Errorf("%d bytes: %s", len(row.Error), row.Error)
		}
		for i, text := range before {
			n := 61 - len(before) + i
			if want := fmt.Sprintf("try %d: %d é", n, n); !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "...") || len(text) > 210 {
				t.Errorf("%q, want it to begin with %q and to be cut", text, want)
			}
		}
	})
}
