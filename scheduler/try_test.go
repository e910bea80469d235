package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// attempts collects the tries of a job.
type attempts struct {
	mu   sync.Mutex
	runs []*jobs.Run
	at   []time.Time
}

// trier is a job of each minute whose n-th try ends with the result of f.
func (a *attempts) trier(retry jobs.Retry, f func(ctx context.Context, try int) error) jobs.Job {
	return jobs.Job{Name: "job", Schedule: "@every 1m", TTL: 5 * time.Second, Retry: retry, Func: func(ctx context.Context, r *jobs.Run) error {
		a.mu.Lock()
		a.runs, a.at = append(a.runs, r), append(a.at, time.Now())
		a.mu.Unlock()
		fmt.Fprint(r.Output(), "output of try ", r.Try())
		return f(ctx, r.Try())
	}}
}

// A run fails four times and succeeds: one run, one token, one lease of 5 s that is kept. Each wait
// is more than half of the backoff, which doubles up to its maximum.
func TestRetriesAreOneRun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		retry := jobs.Retry{Max: 4, Backoff: time.Second, MaxBackoff: 3 * time.Second}
		c.start("a", scheduler.Config{}, a.trier(retry, func(_ context.Context, try int) error {
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
			full := min(retry.Backoff<<(i-1), retry.MaxBackoff)
			if waited := a.at[i].Sub(a.at[i-1]); waited > full || waited <= full/2 {
				t.Errorf("try %d began %s after the one before, want more than half of %s, and not more than it", i+1, waited, full)
			}
		}
		row := c.runs("job")[0]
		if row.Outcome != jobs.OutcomeSucceeded || row.Tries != 5 || row.Error != "" {
			t.Errorf("recorded %s after %d tries, error %q", row.Outcome, row.Tries, row.Error)
		}
		l := must[*ledger.Ledger](t)(ledger.Join(t.Context(), c.redis(), ledger.Config{}))
		if output, _, err := query.Kept(t.Context(), l, "job", row.Run); string(output) != "output of try 5" || err != nil {
			t.Errorf("output %q, %v; want the last try's", output, err)
		}
	})
}

// The kept 2 KiB hold the last error and the newest of the earlier errors, the first line of each.
func TestErrorTextsKeepTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var few, long attempts
		two := few.trier(jobs.Retry{Max: 2}, func(_ context.Context, try int) error { return fmt.Errorf("no paper in tray %d\nnor elsewhere", try) })
		two.Name = "few"
		c.start("a", scheduler.Config{}, two, long.trier(jobs.Retry{Max: 60, Backoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond},
			func(_ context.Context, try int) error { return fmt.Errorf("%d %s", try, strings.Repeat("é", 200)) }))
		time.Sleep(70 * time.Second)
		want := "no paper in tray 3\nnor elsewhere; before: try 1: no paper in tray 1; try 2: no paper in tray 2"
		if row := c.runs("few")[0]; row.Outcome != jobs.OutcomeFailed || row.Tries != 3 || row.Error != want {
			t.Errorf("recorded %s after %d tries: %q, want %q", row.Outcome, row.Tries, row.Error, want)
		}
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

//go:noinline
func printer(tray []int) int { return tray[7] }

//go:noinline
func office() int { return printer(nil) }

//go:noinline
func deep(n int) error {
	if n == 0 {
		panic("at the bottom")
	}
	return errors.Join(deep(n - 1))
}

func atTheEnd() { panic("cleaned up too much") }

// typed is an error whose methods work on a value only.
type typed struct{ text string }

func (e *typed) Error() string { return e.text }

// A panic is a failure, recorded with its stack. So is an error whose Error method panics, as a nil
// pointer in an interface does. A text as long as a server's whole answer is cut.
func TestPanicsAreRecordedWithTheirStack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, f func() error) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 1m", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error { return f() }}
		}
		var none *typed
		c.start("a", scheduler.Config{},
			job("index", func() error { return fmt.Errorf("page %d", office()) }),
			job("nil", func() error { var r *jobs.Run; return errors.New(r.ID()) }),
			job("again", func() error { defer atTheEnd(); panic("first") }),
			job("large", func() error { panic(strings.Repeat("x", 10_000)) }),
			job("deep", func() error { return deep(50) }),
			job("mute", func() error { return none }),
			job("long", func() error { return &typed{strings.Repeat("x", 1<<20)} }),
			job("final", func() error { return jobs.Permanent(&typed{"final"}) }))
		time.Sleep(65 * time.Second)
		const here = `scheduler_test\.TestPanicsAreRecordedWithTheirStack\.[a-z0-9.]+ \(try_test\.go:\d+\)`
		for name, want := range map[string]string{
			"index": `panic: runtime error: index out of range \[7\] with length 0\n\tscheduler_test\.printer \(try_test\.go:\d+\)\n\tscheduler_test\.office \(try_test\.go:\d+\)\n\t` + here + `(.|\n)*`,
			"nil":   `panic: runtime error: invalid memory address or nil pointer dereference\n\tjobs\.\(\*Run\)\.ID \(run\.go:\d+\)\n\t` + here + `(.|\n)*`,
			"again": `panic: cleaned up too much\n\tscheduler_test\.atTheEnd \(try_test\.go:\d+\)\n\t` + here + `(.|\n)*`,
			"large": `panic: x{509}\.\.\.\n\t` + here + `(.|\n)*`,
			"deep":  `panic: at the bottom(\n\tscheduler_test\.deep \(try_test\.go:\d+\)){10}`,
			"mute":  `panic: runtime error: invalid memory address or nil pointer dereference\n\tscheduler_test\.\(\*typed\)\.Error \(try_test\.go:\d+\)(.|\n)*`,
			"long":  `x{1000}x{1000}x{45}\.\.\.`,
			"final": `final`,
		} {
			if row := c.runs(name)[0]; row.Outcome != jobs.OutcomeFailed || !regexp.MustCompile(`^`+want+`$`).MatchString(row.Error) {
				t.Errorf("%s: %s, %s\nwant %s", name, row.Outcome, row.Error, want)
			}
		}
		if long := c.logs.String(); len(long) > 1<<18 {
			t.Errorf("%d bytes were logged", len(long))
		}
	})
}

// A function that ends its goroutine has failed; the run, its slot and the tries that are left do
// not go with it.
func TestGoexitIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		job := a.trier(jobs.Retry{Max: 2, Backoff: time.Second}, func(_ context.Context, try int) error {
			if try == 2 {
				defer func() { panic("on the way out") }()
			}
			runtime.Goexit()
			return nil
		})
		n := c.start("a", scheduler.Config{MaxRunning: 1}, job)
		time.Sleep(130 * time.Second)
		c.leave(n)
		runs := c.runs("job")
		if len(runs) != 2 || len(a.runs) != 6 {
			t.Errorf("%d runs recorded, %d tries; want 2 and 6", len(runs), len(a.runs))
		}
		const left = "the function ended its goroutine instead of returning"
		want := left + "; before: try 1: " + left + "; try 2: " + left
		for _, row := range runs {
			if row.Outcome != jobs.OutcomeFailed || row.Tries != 3 || row.Error != want {
				t.Errorf("recorded %s after %d tries: %q, want %q", row.Outcome, row.Tries, row.Error, want)
			}
		}
	})
}
