package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

func TestPauseAndResume(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.ops()
		c.start("a", scheduler.Config{}, eachSecond("job", s), eachSecond("other", s))
		time.Sleep(5*time.Second + 500*time.Millisecond)
		began := time.Now()
		until := began.Add(10 * time.Second)
		refused(t, i.Pause(ctx, "job", ops.PauseOptions{Reason: " "}), ops.ErrRefused, "reason")
		refused(t, i.Pause(ctx, "job", ops.PauseOptions{Reason: "x", Until: began}), ops.ErrRefused, "over")
		refused(t, i.Pause(ctx, "nope", ops.PauseOptions{Reason: "x"}), ops.ErrUnknownJob, "nope")
		refused(t, i.Resume(ctx, "nope"), ops.ErrUnknownJob, "nope")
		for what, err := range map[string]error{
			`pause job: the author "M\xfcller"`:         i.Pause(ctx, "job", ops.PauseOptions{Author: "M\xfcller", Reason: "x"}),
			`pause job: the reason "f\xfcr"`:            i.Pause(ctx, "job", ops.PauseOptions{Reason: "f\xfcr"}),
			`cancel run x: the author "M\xfcller"`:      second(i.Cancel(ctx, "x", ops.CancelOptions{Author: "M\xfcller"})),
			`cancel run x: the reason "f\xfcr"`:         second(i.Cancel(ctx, "x", ops.CancelOptions{Reason: "f\xfcr"})),
			`drain node a: the author "M\xfcller"`:      i.DrainNode(ctx, "a", ops.DrainOptions{Author: "M\xfcller"}),
			`drain node a: the reason "f\xfcr"`:         i.DrainNode(ctx, "a", ops.DrainOptions{Reason: "f\xfcr"}),
			`promote two: the author "M\xfcller" is no`: second(i.Promote(ctx, "two", ops.PromoteOptions{Author: "M\xfcller"})),
		} {
			refused(t, err, ops.ErrRefused, what)
		}
		if err := i.Pause(ctx, "job", ops.PauseOptions{Reason: "a|b\nc", Author: "ann", Until: until}); err != nil {
			t.Fatal(err)
		}
		v := c.job("job")
		if p := v.Pause; !v.Paused || p == nil || p.Author != "ann" || p.Reason != "a/b c" ||
			!p.Since.Equal(began) || !p.Until.Equal(until) {
			t.Errorf("got %+v", v.Pause)
		}
		if first := until.Add(500 * time.Millisecond); v.Next.IsZero() || !v.Next.Equal(first) {
			t.Errorf("the next tick is %v, want the first one after the pause, %s", v.Next, first)
		}
		if v := c.job("other"); v.Paused || v.Pause != nil {
			t.Errorf("another job is paused: %+v", v)
		}
		id := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
		if r := must[ops.RunView](t)(i.WaitRun(ctx, id)); r.Outcome != jobs.OutcomeSucceeded || time.Now().After(until) {
			t.Errorf("by hand while it is paused: %+v at %s", r, time.Now())
		}
		if err := i.Pause(ctx, "job", ops.PauseOptions{Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		if v := c.job("job"); v.Pause == nil || !v.Pause.Until.IsZero() || v.Pause.Author != "unknown" || !v.Next.IsZero() {
			t.Errorf("without an end: %+v, next %v", v.Pause, v.Next)
		}
		_, err := i.GetRun(ctx, "") // as ranges have
		refused(t, err, ops.ErrUnknownRun)
		for range 2 { // resumed once more, it stays as it is
			if err := i.Resume(ctx, "job"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		c.end()
		s.check(t)
		if got := outcomes(c.runs("job")); got["paused(paused)"] != 12 || got["succeeded"] != 8 {
			t.Errorf("history %v, want 12 ticks paused, 7 run and one run by hand", got)
		}
	})
}

func TestTriggerAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.ops()
		yearly := func(name string) jobs.Job {
			return jobs.Job{Name: name, Schedule: "0 12 1 7 *", Func: func(_ context.Context, r *jobs.Run) error {
				s.write(r)
				fmt.Fprintf(r.Output(), "got %s\xff", r.Payload())
				return nil
			}}
		}
		c.start("a", scheduler.Config{}, yearly("job"), yearly("other"))
		time.Sleep(time.Second)
		trigger := func(job string, o ops.TriggerOptions) string {
			t.Helper()
			return must[string](t)(i.Trigger(ctx, job, o))
		}
		at := time.Now().Add(30 * time.Second)
		id := trigger("job", ops.TriggerOptions{At: at, Payload: []byte(`{"n":1}`)})
		r := must[ops.RunView](t)(i.GetRun(ctx, id))
		if r.Outcome != jobs.OutcomeRunning || r.Reason != "pending until "+ops.FormatTime(r.NotBefore) || !r.Started.IsZero() || r.Lag.Milliseconds() != 0 ||
			!r.NotBefore.Equal(at) || !r.Due.Equal(at) || string(r.Payload) != `{"n":1}` {
			t.Errorf("before its time: %+v", r)
		}
		r = must[ops.RunView](t)(i.WaitRun(ctx, id))
		if late := r.Started.Sub(at); r.Outcome != jobs.OutcomeSucceeded || late < 0 || late > time.Second || !r.Tick.Equal(at) {
			t.Errorf("got %+v, late by %s", r, late)
		}
		if r.Output != "got {\"n\":1}\uFFFD" || string(r.Payload) != `{"n":1}` {
			t.Errorf("kept beside it: %q, %q", r.Output, r.Payload)
		}
		if list := c.runs("job"); len(list) != 1 || list[0].Output != "" || list[0].Payload != nil {
			t.Errorf("in a list: %+v", list)
		}

		once := ops.TriggerOptions{Unique: "day 1", At: time.Now().Add(5 * time.Second), Payload: []byte(`1`)}
		first := trigger("job", once)
		if a, b := trigger("job", once), trigger("job", ops.TriggerOptions{Unique: "day 1", Payload: []byte(`2`)}); a != first || b != first {
			t.Errorf("the same key made %s and %s after %s", a, b, first)
		}
		second, another := trigger("other", once), trigger("job", ops.TriggerOptions{Unique: "day 2"})
		if another == first || another == second || first == second {
			t.Error("another key, or another job's, is the same run")
		}
		if r := must[ops.RunView](t)(i.WaitRun(ctx, first)); string(r.Payload) != "1" || trigger("job", once) != first {
			t.Errorf("the second request counts: %s", r.Payload)
		}
		for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(-1), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			_, err := i.Trigger(ctx, "job", ops.TriggerOptions{At: at})
			refused(t, err, ops.ErrRefused, "1970 to 9999")
		}
		_, err := i.Trigger(ctx, "job", ops.TriggerOptions{Payload: []byte("{")})
		refused(t, err, ops.ErrRefused, "JSON")
		_, err = i.Trigger(ctx, "nope", ops.TriggerOptions{})
		refused(t, err, ops.ErrUnknownJob, "nope")
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i, cause := t.Context(), c.ops(), make(chan error, 1)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "endless", Schedule: "0 12 1 7 *", Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			time.Sleep(2 * time.Second) // cleaning up
			return ctx.Err()
		}}, eachSecond("quick", &sink{}))
		time.Sleep(1500 * time.Millisecond)
		going := must[string](t)(i.Trigger(ctx, "endless", ops.TriggerOptions{}))
		waiting := must[string](t)(i.Trigger(ctx, "endless", ops.TriggerOptions{Payload: []byte("7")}))
		time.Sleep(time.Second)

		what, err := i.Cancel(ctx, waiting, ops.CancelOptions{})
		if err != nil || what != ops.CancelRecorded {
			t.Fatalf("got %q, %v", what, err)
		}
		r := must[ops.RunView](t)(i.GetRun(ctx, waiting))
		if r.Outcome != jobs.OutcomeCancelled || r.Reason != "cancelled by unknown" || !r.Started.IsZero() || r.Ended.IsZero() || r.Lag.Milliseconds() != 0 || r.Duration.Milliseconds() != 0 ||
			r.Token != 0 || r.Tries != 0 || string(r.Payload) != "7" {
			t.Errorf("a run that never began: %+v", r)
		}

		third := must[string](t)(i.Trigger(ctx, "endless", ops.TriggerOptions{}))
		what, err = i.Cancel(ctx, going, ops.CancelOptions{Author: "ann", Reason: "too\nlong"})
		if err != nil || what != ops.CancelTold {
			t.Fatalf("got %q, %v", what, err)
		}
		asked := time.Now()
		if why := <-cause; !errors.Is(why, jobs.ErrCancelled) || time.Since(asked) > 500*time.Millisecond {
			t.Errorf("cause %v after %s", why, time.Since(asked))
		}
		if r := must[ops.RunView](t)(i.GetRun(ctx, going)); r.Outcome != jobs.OutcomeRunning || r.Note != "to be cancelled by ann: too long" {
			t.Errorf("while it cleans up: %+v", r)
		}
		if r := must[ops.RunView](t)(i.GetRun(ctx, third)); r.Note != "" {
			t.Errorf("another run: %+v", r)
		}
		if r := must[ops.RunView](t)(i.WaitRun(ctx, going)); r.Outcome != jobs.OutcomeCancelled || r.Reason != "cancelled by ann: too long" || r.Note != "" || r.Started.IsZero() {
			t.Errorf("got %+v", r)
		}
		_, err = i.Cancel(ctx, c.runs("quick")[0].Run, ops.CancelOptions{})
		refused(t, err, ops.ErrRefused, "has ended")
		for _, id := range []string{"nope", ""} {
			_, err = i.Cancel(ctx, id, ops.CancelOptions{})
			refused(t, err, ops.ErrUnknownRun, id)
		}
	})
}

// A run that is handed back between Cancel's look and its script is another id's now, and is ended
// all the same.
func TestCancelFollowsAHandBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b := c.keepBooks(minutely)
		hand := must[string](t)(c.ops().Trigger(t.Context(), "job", ops.TriggerOptions{}))
		b.grant(hand)
		i := c.ops(around{script: "cancel", before: sync.OnceFunc(func() { b.handBack(hand) })})
		if did, err := i.Cancel(t.Context(), hand, ops.CancelOptions{}); did != ops.CancelRecorded || err != nil {
			t.Errorf("got %q, %v", did, err)
		}
		if v := must[ops.RunView](t)(i.GetRun(t.Context(), hand)); v.Outcome != jobs.OutcomeCancelled {
			t.Errorf("it goes on: %+v", v)
		}
	})
}

func TestRerun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i := t.Context(), c.ops()
		seen := make(chan *jobs.Run, 10)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "* * * * *", Func: func(_ context.Context, r *jobs.Run) error {
			seen <- r
			time.Sleep(2 * time.Second)
			return fmt.Errorf("attempt %d", r.Attempt())
		}})
		first := <-seen
		_, err := i.Rerun(ctx, first.ID())
		refused(t, err, ops.ErrRefused, "has not ended")
		must[ops.RunView](t)(i.WaitRun(ctx, first.ID()))
		next := must[string](t)(i.Rerun(ctx, first.ID()))
		if again := must[string](t)(i.Rerun(ctx, first.ID())); again != next || next == first.ID() {
			t.Errorf("asked twice: %s and %s, of %s", next, again, first.ID())
		}
		r := must[ops.RunView](t)(i.WaitRun(ctx, next))
		if r.Run != next || r.Attempt != 2 || r.Trigger != "rerun" || !r.Tick.Equal(first.Tick()) || r.Outcome != jobs.OutcomeFailed {
			t.Errorf("got %+v", r)
		}
		if again := must[string](t)(i.Rerun(ctx, first.ID())); again != next {
			t.Error("asked again after its end, it is another run")
		}
		time.Sleep(5 * time.Second)
		if len(seen) != 1 {
			t.Error("it ran more often than it was asked to")
		}
		if r := must[ops.RunView](t)(i.GetRun(ctx, first.ID())); r.Attempt != 1 || r.Outcome != jobs.OutcomeFailed {
			t.Errorf("the first attempt: %+v", r)
		}

		hand := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{Payload: []byte(`"p"`)}))
		must[ops.RunView](t)(i.WaitRun(ctx, hand))
		r = must[ops.RunView](t)(i.WaitRun(ctx, must[string](t)(i.Rerun(ctx, hand))))
		if string(r.Payload) != `"p"` || r.Attempt != 2 {
			t.Errorf("the payload of a run by hand: %+v", r)
		}
		if r := must[ops.RunView](t)(i.GetRun(ctx, hand)); r.Run != hand || r.Attempt != 1 {
			t.Errorf("by its own id: %+v", r)
		}
		_, err = i.Rerun(ctx, "nope")
		refused(t, err, ops.ErrUnknownRun, "nope")
	})
}

// An operator's request that is repeated, because the answer got lost, is carried out once.
func TestOperatingWithLostAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job, warm := eachSecond("job", s), eachSecond("warm", s)
		job.Schedule, warm.Schedule = "* * * * *", "* * * * *"
		n := c.start("a", whenDue, job, warm)
		time.Sleep(5*time.Minute + 10*time.Second)
		var network redistest.Net
		client := network.Client(server.Options())
		defer client.Close()
		i, err := ops.New(client, "")
		if err != nil {
			t.Fatal(err)
		}
		to := time.Now().Add(-3 * time.Minute).Truncate(time.Minute)
		steps := func(list ...lossy) {
			for _, step := range list {
				if err := step.do(i, "warm"); err != nil { // the server has cached the scripts now
					t.Fatal(step.what, err)
				}
				network.LoseReplies(1, step.word)
				refused(t, step.do(i, "job"), locking.ErrUnreachable)
				if network.Losing() != 0 {
					t.Errorf("%s: the fault did not happen", step.what)
				}
				if err := step.do(i, "job"); !errors.Is(err, step.again) {
					t.Errorf("%s, asked again: %v, want %v", step.what, err, step.again)
				}
			}
		}
		run := operate.UniqueRun("job", "u")
		steps(lossy{"run", run, nil, func(i *ops.Client, job string) error {
			_, err := i.Trigger(t.Context(), job, ops.TriggerOptions{At: time.Now().Add(time.Hour), Unique: "u"})
			return err
		}}, lossy{"cancel", "author-job", nil, func(i *ops.Client, job string) error {
			_, err := i.Cancel(t.Context(), operate.UniqueRun(job, "u"), ops.CancelOptions{Author: "author-" + job})
			return err
		}}, lossy{"rerun", ledger.NextAttemptID(run), nil, func(i *ops.Client, job string) error {
			_, err := i.Rerun(t.Context(), operate.UniqueRun(job, "u"))
			return err
		}})
		time.Sleep(5 * time.Second)
		steps(lossy{"pause", "author-job", nil, func(i *ops.Client, job string) error {
			return i.Pause(t.Context(), job, ops.PauseOptions{Author: "author-" + job, Reason: "so that the cursor stays"})
		}})
		c.leave(n)
		steps(lossy{"rewind", ":due\r\n", ops.ErrRefused, func(i *ops.Client, job string) error {
			_, err := i.Rewind(t.Context(), job, to)
			return err
		}})
		l := must[*ledger.Ledger](t)(ledger.Join(t.Context(), c.redis(), ledger.Config{}))
		if at := time.UnixMilli(must[query.Stored](t)(query.Job(t.Context(), l, "job")).Cursor); !at.Equal(to) {
			t.Errorf("it stands at %s, want %s", at, to)
		}
		steps(lossy{"resume", `"resume":true`, nil, func(i *ops.Client, job string) error { return i.Resume(t.Context(), job) }})
		got := outcomes(c.runs("job"))
		if got["superseded(rewound)"] != 1 || got["cancelled(cancelled by author-job)"] != 1 || got["succeeded"] != 6 || len(got) != 3 {
			t.Errorf("history %v", got)
		}
		steps(lossy{"remove", ":due\r\n", ops.ErrUnknownJob, func(i *ops.Client, job string) error { return i.Delete(t.Context(), job, time.Time{}) }})
	})
}

// lossy is a request whose answer gets lost: the answer to the command that contains word.
type lossy struct {
	what, word string
	again      error // what it is answered when it is made again
	do         func(i *ops.Client, job string) error
}

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		ctx, i, s := t.Context(), c.ops(), &sink{}
		long := jobs.Job{Name: "long", Schedule: "@every 1m", TTL: 30 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return nil
		}}
		follower := jobs.Job{Name: "follower", After: []string{"long"}, Func: long.Func}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, long, follower)
		other := eachSecond("other", s)
		c.start("b", scheduler.Config{}, other)
		time.Sleep(61 * time.Second)
		refused(t, i.Delete(ctx, "long", time.Time{}), ops.ErrRefused, "held by doomed")
		refused(t, i.Delete(ctx, "nope", time.Time{}), ops.ErrUnknownJob, "nope")
		if v := c.job("long"); v.Orphan || v.Owner != "doomed" || v.Open == "" {
			t.Errorf("while it is held: %+v", v)
		}
		network.Cut()
		time.Sleep(10 * time.Second)
		if v := c.job("long"); !v.Orphan || v.Owner != "" {
			t.Errorf("when nobody holds it: %+v", v)
		}
		refused(t, i.Delete(ctx, "long", time.Time{}), ops.ErrRefused, "in flight")
		if v := c.job("other"); v.Orphan {
			t.Errorf("of another node: %+v", v)
		}
		time.Sleep(40 * time.Second)
		if got := outcomes(c.runs("long")); got["abandoned(lease lapsed)"] != 1 {
			t.Fatalf("history %v", got)
		}
		if v := c.job("follower"); len(v.After) != 1 || v.After[0] != "long" || v.Schedule != "" || !v.Next.IsZero() || !v.HistoryFrom.IsZero() {
			t.Errorf("a job that follows: %+v", v)
		}
		for _, name := range []string{"follower", "long"} {
			if err := i.Delete(ctx, name, time.Time{}); err != nil {
				t.Fatal(err)
			}
			_, err := i.GetJob(ctx, name)
			refused(t, err, ops.ErrUnknownJob, name)
			for _, key := range server.Mini().Keys() { // no follower is registered for its ticks any more
				if strings.HasSuffix(key, ":followers") {
					t.Errorf("after %s was removed there is still %s", name, key)
				}
			}
		}
		for _, key := range server.Mini().Keys() {
			values, err := server.Mini().HKeys(key)
			if err != nil {
				continue // no hash
			}
			for _, field := range values {
				if field == "long" || field == "follower" {
					t.Errorf("%s still has %s", key, field)
				}
			}
		}
		if list := must[ops.Page[ops.JobView]](t)(i.ListJobs(ctx, ops.JobFilter{})).Items; len(list) != 1 || list[0].Name != "other" {
			t.Errorf("left are %+v", list)
		}
		network.Heal()
		time.Sleep(10 * time.Second)
	})
}

func TestRemoveBesideANewerNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		ctx, i, s := t.Context(), c.ops(), &sink{}
		job := eachSecond("job", s)
		job.Labels = map[string]string{"disk": "fast"}
		n := c.start("a", scheduler.Config{}, job)
		time.Sleep(3 * time.Second)
		if v := c.job("job"); v.Orphan || v.Owner != "" {
			t.Errorf("held by a node without its labels: %+v", v)
		}
		c.leave(n)
		client := c.redis()
		newer := `{"v":99,"id":"newer","set":{"of":"another kind"}}`
		if err := errors.Join(client.HSet(ctx, "{escapement}:roster", "newer", newer).Err(),
			client.ZAdd(ctx, "{escapement}:seen", redis.Z{Score: float64(time.Now().UnixMilli()), Member: "newer"}).Err()); err != nil {
			t.Fatal(err)
		}
		refused(t, i.Delete(ctx, "job", time.Time{}), ops.ErrRefused, "what 1 of the living nodes hold cannot be read")
		if err := errors.Join(client.HDel(ctx, "{escapement}:roster", "newer").Err(), client.ZRem(ctx, "{escapement}:seen", "newer").Err()); err != nil {
			t.Fatal(err)
		}
		if err := i.Delete(ctx, "job", time.Time{}); err != nil {
			t.Error(err)
		}
	})
}
