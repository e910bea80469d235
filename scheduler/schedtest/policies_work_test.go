package schedtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
)

// called is one call of a job's function, as the function saw it.
type called struct {
	run          *jobs.Run
	began, ended time.Time // true time; ended is zero when it has not returned
	err          error
	stubborn     bool
}

// work is a function that does what the seed says for each attempt and try of a tick, and writes down that it
// was called.
func (t *tale) work(n nature) jobs.Func {
	return func(ctx context.Context, run *jobs.Run) (err error) {
		k := &called{run: run, began: time.Now(), stubborn: n.stubborn}
		t.mu.Lock()
		t.calls = append(t.calls, k)
		t.mu.Unlock()
		k.err = errors.New("it panicked")
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			k.ended = time.Now()
		}()
		run.SetOutput([]byte(run.ID()))
		err = n.deed(ctx, t.seed, run)
		t.mu.Lock()
		defer t.mu.Unlock()
		k.err = err
		return err
	}
}

func (n nature) deed(ctx context.Context, seed uint64, run *jobs.Run) error {
	what := fmt.Sprint(n.job, run.Tick().UnixMilli(), run.Attempt(), run.Try())
	if run.Shards() > 1 {
		what += fmt.Sprint(" shard ", run.Shard())
	}
	x := fold(seed, what)
	timer := time.NewTimer(n.length(x))
	defer timer.Stop()
	done := ctx.Done()
	if n.stubborn {
		done = nil
	}
	select {
	case <-timer.C:
	case <-done:
		return context.Cause(ctx)
	}
	if int(x>>20%16) >= n.fails {
		return nil
	}
	switch x >> 30 % 4 {
	case 0:
		return jobs.Permanent(errors.New("it never will"))
	case 1:
		panic("it broke")
	default:
		return errors.New("it did not work")
	}
}

func (n nature) length(x uint64) time.Duration {
	switch {
	case n.slow == 0 || n.slow == 1 && x>>8%3 > 0:
		return n.base
	case x>>12%2 == 0:
		return n.base * 4
	default:
		return n.base * 14
	}
}
