package scheduler_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestReadAlong: what a run writes can be read about a second later while it goes on, and costs no
// call when nothing was written. An earlier try's output does not outlive the run, when the last
// try has written nothing.
func TestReadAlong(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		say, i := make(chan string), c.ops()
		calls := &tailCalls{}
		client := c.client()
		client.AddHook(calls)
		talks := jobs.Job{Name: "talks", Schedule: "@yearly", TTL: 5 * time.Second, Retry: jobs.Retry{Max: 1, Backoff: time.Second, MaxBackoff: time.Second}, Func: func(_ context.Context, r *jobs.Run) error {
			for words := range say {
				if words == "" {
					return errors.New("no luck")
				}
				_, _ = io.WriteString(r.Output(), words)
			}
			return nil
		}}
		quick := eachSecond("quick", &sink{})
		quick.Func = func(_ context.Context, r *jobs.Run) error {
			_, err := io.WriteString(r.Output(), "said\n")
			return err
		}
		c.startOver(client, "a", scheduler.Config{}, talks, quick)
		time.Sleep(10*time.Second + 300*time.Millisecond)
		if n := calls.n.Load(); n != 0 {
			t.Errorf("%d calls for runs of an instant", n)
		}
		id := must[string](t)(i.Trigger(t.Context(), "talks", ops.TriggerOptions{}))
		output := func() string { return must[ops.RunView](t)(i.GetRun(t.Context(), id)).Output }
		say <- "one\n"
		time.Sleep(2500 * time.Millisecond)
		if got := output(); got != "one\n" {
			t.Errorf("got %q", got)
		}
		before := calls.n.Load()
		time.Sleep(20 * time.Second)
		if n := calls.n.Load() - before; n != 0 {
			t.Errorf("%d calls for nothing new", n)
		}
		for range 50 {
			say <- strings.Repeat("x", jobs.MaxOutput/5)
			time.Sleep(100 * time.Millisecond)
		}
		if n := calls.n.Load() - before; n < 3 || n > 6 {
			t.Errorf("%d calls in five seconds of writing", n)
		}
		time.Sleep(time.Second)
		if got := output(); len(got) != jobs.MaxOutput {
			t.Errorf("%d bytes", len(got))
		}
		say <- "" // the next try writes nothing: the earlier try's text stays
		time.Sleep(3 * time.Second)
		close(say)
		v := must[ops.RunView](t)(i.WaitRun(t.Context(), id))
		if v.Outcome != jobs.OutcomeSucceeded || v.Tries != 2 || len(v.Output) != jobs.MaxOutput {
			t.Errorf("got %s after %d tries, %d bytes", v.Outcome, v.Tries, len(v.Output))
		}
	})
}

// tailCalls counts the calls of tail.lua.
type tailCalls struct{ n atomic.Int64 }

var tailScript = func() string {
	for _, s := range ledger.Scripts() {
		if s.Name() == "tail" {
			return s.Hash()
		}
	}
	panic("there is no script tail")
}()

func (*tailCalls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *tailCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 {
			if hash, is := args[1].(*string); is && *hash == tailScript || args[1] == tailScript {
				h.n.Add(1)
			}
		}
		return next(ctx, cmd)
	}
}

func (*tailCalls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
