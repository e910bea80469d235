package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

//go:noinline
func printer(tray []int) int { return tray[7] }

//go:noinline
func office() int { return printer(nil) }

func atTheEnd() { panic("cleaned up too much") }

func TestPanicsAreRecordedWithTheirStack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, f jobs.Func) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 1m", TTL: 5 * time.Second, Func: f}
		}
		c.start("a", scheduler.Config{},
			job("index", func(context.Context, *jobs.Run) error { return fmt.Errorf("page %d", office()) }),
			job("nil", func(context.Context, *jobs.Run) error { var r *jobs.Run; return errors.New(r.ID()) }),
			job("again", func(context.Context, *jobs.Run) error { defer atTheEnd(); panic("first") }),
			job("large", func(context.Context, *jobs.Run) error { panic(strings.Repeat("x", 10_000)) }),
			job("deep", func(context.Context, *jobs.Run) error { return deep(50) }))
		time.Sleep(65 * time.Second)
		const here = `scheduler_test\.TestPanicsAreRecordedWithTheirStack\.[a-z0-9.]+ \(panic_test\.go:\d+\)`
		for name, want := range map[string]string{
			"index": `panic: runtime error: index out of range \[7\] with length 0\n\tscheduler_test\.printer \(panic_test\.go:\d+\)\n\tscheduler_test\.office \(panic_test\.go:\d+\)\n\t` + here,
			"nil":   `panic: runtime error: invalid memory address or nil pointer dereference\n\tjobs\.\(\*Run\)\.ID \(run\.go:\d+\)\n\t` + here,
			"again": `panic: cleaned up too much\n\tscheduler_test\.atTheEnd \(panic_test\.go:\d+\)\n\t` + here + `(\n\t` + here + `)*`,
			"large": `panic: x{509}\.\.\.\n\t` + here,
			"deep":  `panic: at the bottom(\n\tscheduler_test\.deep \(panic_test\.go:\d+\)){10}`,
		} {
			row := c.runs(name)[0]
			if row.Outcome != "failed" || !regexp.MustCompile(`^`+want+`$`).MatchString(row.Error) {
				t.Errorf("%s: %s, %s\nwant %s", name, row.Outcome, row.Error, want)
			}
		}
	})
}

// typed is an error whose methods work on a value only.
type typed struct{ text string }

func (e *typed) Error() string { return e.text }

// An error that cannot say what it is, as a nil pointer in an interface, is its function's failure, and so is one that is as long as all
// that a server has answered.
func TestErrorsThatPanic(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, err error) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 1m", Retry: jobs.Retry{Max: 1}, Func: func(context.Context, *jobs.Run) error { return err }}
		}
		var none *typed
		c.start("a", scheduler.Config{}, job("nil", none), job("long", &typed{strings.Repeat("x", 1<<20)}), job("final", jobs.Permanent(&typed{"final"})))
		time.Sleep(65 * time.Second)
		for name, want := range map[string]string{
			"nil":   `panic: runtime error: invalid memory address or nil pointer dereference\n\tscheduler_test\.\(\*typed\)\.Error \(panic_test\.go:\d+\)(.|\n)*; before: try 1: panic: .*`,
			"long":  `x{1000}x{1000}x{45}\.\.\.`,
			"final": `final`,
		} {
			row := c.runs(name)[0]
			if tries := map[bool]int{true: 1, false: 2}[name == "final"]; row.Outcome != "failed" || row.Tries != tries || !regexp.MustCompile(`^`+want+`$`).MatchString(row.Error) {
				t.Errorf("%s: %s after %d tries, %s\nwant %s", name, row.Outcome, row.Tries, row.Error, want)
			}
		}
		if long := c.logs.String(); len(long) > 1<<18 {
			t.Errorf("%d bytes were logged", len(long))
		}
	})
}

//go:noinline
func deep(n int) error {
	if n == 0 {
		panic("at the bottom")
	}
	return errors.Join(deep(n - 1))
}

// A function that ends its goroutine has failed; the run, its slot and the tries that are left do not
// go with it.
func TestGoexitIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		job := a.trier(jobs.Retry{Max: 2, Backoff: time.Second}, func(_ context.Context, try int) error {
			switch try {
			case 1:
				runtime.Goexit()
			case 2:
				defer func() { panic("on the way out") }()
				runtime.Goexit()
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
			if row.Outcome != "failed" || row.Tries != 3 || row.Error != want {
				t.Errorf("recorded %s after %d tries: %q, want %q", row.Outcome, row.Tries, row.Error, want)
			}
		}
	})
}

func TestPanicsAreRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		c.start("a", scheduler.Config{}, a.trier(jobs.Retry{Max: 1}, func(_ context.Context, try int) error {
			if try == 1 {
				panic("no paper")
			}
			return errors.New("no ink")
		}))
		time.Sleep(70 * time.Second)
		if row := c.runs("job")[0]; row.Tries != 2 || row.Error != "no ink; before: try 1: panic: no paper" {
			t.Errorf("recorded after %d tries: %q", row.Tries, row.Error)
		}
	})
}
