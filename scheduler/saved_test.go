package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// table is what a job of steps writes to: it refuses a smaller token than it has seen, and a step
// that it has.
type table struct {
	mu             sync.Mutex
	token          int64
	done           map[int]int64 // the token by which a step was done
	again, refused int
}

// write does a step, and reports whether the token may write.
func (b *table) write(step int, token int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token < b.token {
		b.refused++
		return false
	}
	b.token = token
	if b.done[step] != 0 {
		b.again++
	} else {
		b.done[step] = token
	}
	return true
}

// steps is a job of so many steps, each half a second long, that saves after each where it is. It
// does not look at its context.
func steps(n int, b *table, on chan<- string) jobs.Func {
	return func(_ context.Context, run *jobs.Run) error {
		ctx := context.Background() // a node that is cut off does not know it at once
		from, _ := strconv.Atoi(string(run.Saved()))
		on <- run.Node()
		for step := from; step < n; step++ {
			time.Sleep(500 * time.Millisecond)
			if !b.write(step, run.Token()) {
				return fmt.Errorf("step %d: the token is too old", step)
			}
			run.Progress(int64(step+1), int64(n), "")
			if err := run.Save(ctx, []byte(strconv.Itoa(step+1))); err != nil {
				time.Sleep(20 * time.Second) // as a process does that was stopped and goes on
			}
		}
		return nil
	}
}

// TestSavedThroughTenCuts: a job of 200 steps whose node is cut off ten times does each step once.
// The next attempt goes on from the checkpoint, and repeats at most the step that was done and not
// saved. What the node that was cut off does later is refused by its token.
func TestSavedThroughTenCuts(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const n, cuts = 200, 10
		b, on := &table{done: make(map[int]int64)}, make(chan string, cuts+1)
		job := jobs.Job{Name: "steps", Schedule: "10 0 0 * * *", TTL: 5 * time.Second, OnCrash: jobs.OnCrashRerun, RerunMax: 2 * cuts, Func: steps(n, b, on)}
		lines := make(map[string]*redistest.Net)
		for _, name := range []string{"a", "b", "c"} {
			lines[name] = &redistest.Net{}
			c.startOver(lines[name].Client(server.Options()), name, scheduler.Config{}, job)
		}
		for range cuts {
			node := <-on
			time.Sleep(7*time.Second + 100*time.Millisecond)
			lines[node].Cut()
			time.AfterFunc(30*time.Second, lines[node].Heal)
		}
		<-on
		time.Sleep(45 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		for step := range n {
			if b.done[step] == 0 {
				t.Fatalf("step %d was not done", step)
			}
		}
		var row ops.RunView
		for _, r := range c.runs("steps") {
			if row.Attempt < r.Attempt {
				row = r
			}
		}
		if row.Outcome != jobs.OutcomeSucceeded || row.Attempt != cuts+1 || b.refused != cuts || b.again > cuts {
			t.Errorf("attempt %d %s; %d writes were refused, %d steps were tried again", row.Attempt, row.Outcome, b.refused, b.again)
		}
		if kept := server.Mini(); kept.Exists(keyOf("steps", "kept")) {
			fields, _ := kept.HKeys(keyOf("steps", "kept"))
			for _, f := range fields {
				if strings.HasPrefix(f, "s:") {
					t.Errorf("the checkpoint is left: %s", f)
				}
			}
		}
	})
}

// TestSaveIsRefused: a value above the limit is refused, and a value of a run that has ended.
func TestSaveIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ran := make(chan *jobs.Run, 1)
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
			var size *jobs.CheckpointSizeError
			if err := run.Save(ctx, bytes.Repeat([]byte("x"), jobs.MaxCheckpoint+1)); !errors.As(err, &size) || size.Size != 65537 || size.Limit != 65536 {
				t.Errorf("64 KiB and one: %v", err)
			}
			if run.Saved() != nil {
				t.Error("what was refused is saved")
			}
			most := bytes.Repeat([]byte{0}, jobs.MaxCheckpoint)
			if err := run.Save(ctx, most); err != nil || !bytes.Equal(run.Saved(), most) {
				t.Errorf("64 KiB: %v", err)
			}
			ran <- run
			return nil
		}}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		must[string](t)(c.ops().Trigger(t.Context(), "job", ops.TriggerOptions{}))
		run := <-ran
		time.Sleep(time.Second)
		if err := run.Save(t.Context(), nil); !errors.Is(err, locking.ErrLeaseLost) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestSavedByEachAttempt: tries, an operator's rerun and the attempts of a shard find the values
// that were saved before them, and other shards do not.
func TestSavedByEachAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var mu sync.Mutex
		found := make(map[string]string)
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 5 * time.Second, Shards: 3, Retry: jobs.Retry{Max: 1, Backoff: time.Second, MaxBackoff: time.Second},
			Func: func(ctx context.Context, run *jobs.Run) error {
				at := fmt.Sprintf("shard %d attempt %d try %d", run.Shard(), run.Attempt(), run.Try())
				mu.Lock()
				found[at] = string(run.Saved())
				mu.Unlock()
				if run.Shard() == 1 && run.Attempt() == 3 {
					return nil
				}
				return errors.Join(run.Save(ctx, []byte(at)), errors.New("no luck"))
			}}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		id, admin := must[string](t)(c.ops().Trigger(t.Context(), "job", ops.TriggerOptions{})), c.ops()
		shard := func(attempt int) (id string) {
			for _, r := range c.runs("job") {
				if r.Shard == 1 && !r.Whole && r.Attempt == attempt {
					id = r.Run
				}
			}
			return id
		}
		must[ops.RunView](t)(admin.WaitRun(t.Context(), id))
		must[ops.RunView](t)(admin.WaitRun(t.Context(), must[string](t)(admin.Rerun(t.Context(), shard(1))))) // a shard alone
		must[ops.RunView](t)(admin.WaitRun(t.Context(), must[string](t)(admin.Rerun(t.Context(), shard(2))))) // which succeeds
		must[ops.RunView](t)(admin.WaitRun(t.Context(), must[string](t)(admin.Rerun(t.Context(), shard(3))))) // and again
		for at, want := range map[string]string{
			"shard 1 attempt 1 try 1": "",
			"shard 1 attempt 1 try 2": "shard 1 attempt 1 try 1",
			"shard 1 attempt 2 try 1": "shard 1 attempt 1 try 2",
			"shard 1 attempt 2 try 2": "shard 1 attempt 2 try 1",
			"shard 1 attempt 3 try 1": "shard 1 attempt 2 try 2",
			"shard 1 attempt 4 try 1": "",
			"shard 2 attempt 1 try 1": "",
			"shard 2 attempt 1 try 2": "shard 2 attempt 1 try 1",
		} {
			if got, ok := found[at]; !ok || got != want {
				t.Errorf("%s found %q, want %q", at, got, want)
			}
		}
	})
}

// TestSavedWaitsForRedis: a later attempt does not begin from nothing because Redis did not answer.
func TestSavedWaitsForRedis(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var unread atomic.Int64
		client := server.Client()
		client.AddHook(refusing(func(cmd redis.Cmder) bool {
			return cmd.Name() == "hmget" && strings.Contains(fmt.Sprint(cmd.Args()...), ":kept") && unread.Add(1) <= 3
		}))
		found := make(chan string, 2)
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
			found <- string(run.Saved())
			return errors.Join(run.Save(ctx, []byte("here")), errors.New("no luck"))
		}}
		c.startOver(client, "a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		admin := c.ops()
		id := must[string](t)(admin.Trigger(t.Context(), "job", ops.TriggerOptions{}))
		must[ops.RunView](t)(admin.WaitRun(t.Context(), id))
		must[ops.RunView](t)(admin.WaitRun(t.Context(), must[string](t)(admin.Rerun(t.Context(), id))))
		if first, then := <-found, <-found; first != "" || then != "here" || unread.Load() != 4 {
			t.Errorf("found %q and %q, after %d calls", first, then, unread.Load())
		}
	})
}

// TestSavedThatCannotBeRead: a later attempt does not wait for ever for a checkpoint that Redis
// refuses to give. It begins anew, which is logged, and saves.
func TestSavedThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		redis.SetHook(func(p *server.Peer, cmd string, args ...string) bool {
			refuses := cmd == "HMGET" && strings.HasSuffix(args[0], ":kept") && strings.HasPrefix(args[1], "s:")
			if refuses {
				p.WriteError("WRONGTYPE Operation against a key holding the wrong kind of value")
			}
			return refuses
		})
		found := make(chan string, 2)
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
			found <- string(run.Saved())
			return errors.Join(run.Save(ctx, []byte("here")), errors.New("no luck"))
		}}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		id := must[string](t)(c.ops().Trigger(t.Context(), "job", ops.TriggerOptions{}))
		must[ops.RunView](t)(c.ops().WaitRun(t.Context(), id))
		again := must[string](t)(c.ops().Rerun(t.Context(), id))
		time.Sleep(30 * time.Second)
		if v := must[ops.RunView](t)(c.ops().GetRun(t.Context(), again)); v.Error != "no luck" || len(found) != 2 {
			t.Errorf("the second attempt is %s and ends with %q", v.Outcome, v.Error)
		}
		if n := c.logs.count("not all that the attempts before have left can be read"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// TestSaveAtANewMaster: a master that has lost the run cannot confirm its lease. Save is refused
// until the run is restored there.
func TestSaveAtANewMaster(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		run, stop := make(chan *jobs.Run), make(chan struct{})
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
			run <- r
			<-stop
			return nil
		}}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		must[string](t)(c.ops().Trigger(t.Context(), "job", ops.TriggerOptions{}))
		r, refused := <-run, 0
		save := func() {
			t.Helper()
			switch err := r.Save(t.Context(), []byte("x")); {
			case errors.Is(err, locking.ErrUnreachable):
				refused++
			case err != nil:
				t.Errorf("save: %v", err)
			}
		}
		save()
		if refused > 0 {
			t.Error("refused at first")
		}
		server.SetRunID(strings.Repeat("b", 40))
		server.Mini().HDel(keyOf("job", "runs"), r.ID())
		for range 100 {
			save()
			time.Sleep(100 * time.Millisecond)
		}
		if was := refused; was == 0 || was > 90 {
			t.Errorf("%d of 100 were refused", was)
		}
		close(stop)
	})
}

// refusing answers the commands that it is true of with an error, and does not send them.
type refusing func(cmd redis.Cmder) bool

func (f refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f(cmd) {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (f refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestWithoutCheckpoints: runs that save nothing, first and later attempts alike, send nothing of
// it, and leave nothing.
func TestWithoutCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var asked []string
		var mu sync.Mutex
		client := server.Client()
		client.AddHook(sent(func(cmd redis.Cmder) {
			if strings.Contains(fmt.Sprint(cmd.Args()...), ":kept") && cmd.Name() != "evalsha" && cmd.Name() != "eval" || calls(cmd, "save") {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, fmt.Sprint(cmd.Args()...))
			}
		}))
		long := eachSecond("long", &sink{})
		long.Schedule, long.StallAfter, long.Func = "@every 1m", time.Hour, func(ctx context.Context, _ *jobs.Run) error {
			time.Sleep(30 * time.Second) // and is renewed
			return errors.New("no luck")
		}
		c.startOver(client, "a", scheduler.Config{}, eachSecond("quick", &sink{}), long)
		time.Sleep(100 * time.Second)
		admin := c.ops()
		for _, r := range c.runs("long") {
			if r.Outcome == jobs.OutcomeFailed {
				must[string](t)(admin.Rerun(t.Context(), r.Run))
			}
		}
		time.Sleep(100 * time.Second)
		if again := c.runs("long"); !slices.ContainsFunc(again, func(r ops.RunView) bool { return r.Attempt == 2 && r.Outcome == jobs.OutcomeFailed }) {
			t.Errorf("there was no second attempt: %+v", again)
		}
		if len(asked) > 0 || server.Mini().Exists(keyOf("long", "kept")) {
			t.Errorf("the node sent %v", asked)
		}
	})
}

// sent sees each command of a client.
type sent func(cmd redis.Cmder)

func (s sent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s(cmd)
		return next(ctx, cmd)
	}
}

func (s sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s(cmd)
		}
		return next(ctx, cmds)
	}
}
