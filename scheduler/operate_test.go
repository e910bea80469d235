package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// inspector is one that lasts as long as the test.
func (c *cluster) inspector() *scheduler.Inspector {
	c.t.Helper()
	client := c.client()
	c.t.Cleanup(func() { _ = client.Close() })
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return i
}

// must is for calls that have to succeed.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused wants an error of a kind, with words.
func refused(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: no word of %q", err, w)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		c.start("a", scheduler.Config{}, eachSecond("job", s), eachSecond("other", s))
		time.Sleep(5*time.Second + 500*time.Millisecond)
		began := time.Now()
		until := began.Add(10 * time.Second)
		refused(t, i.Pause(ctx, "job", scheduler.PauseOptions{Reason: " "}), scheduler.ErrRefused, "reason")
		refused(t, i.Pause(ctx, "job", scheduler.PauseOptions{Reason: "x", Until: began}), scheduler.ErrRefused, "over")
		refused(t, i.Pause(ctx, "nope", scheduler.PauseOptions{Reason: "x"}), scheduler.ErrUnknownJob, "nope")
		refused(t, i.Resume(ctx, "nope"), scheduler.ErrUnknownJob, "nope")
		if err := i.Pause(ctx, "job", scheduler.PauseOptions{Reason: "a|b\nc", Author: "ann", Until: until}); err != nil {
			t.Fatal(err)
		}
		v := must[scheduler.JobView](t)(i.Job(ctx, "job"))
		if p := v.Pause; !v.Paused || p == nil || p.Author != "ann" || p.Reason != "a/b c" ||
			!time.Time(*p.Since).Equal(began) || !time.Time(*p.Until).Equal(until) {
			t.Errorf("got %+v", v.Pause)
		}
		if v := must[scheduler.JobView](t)(i.Job(ctx, "other")); v.Paused || v.Pause != nil {
			t.Errorf("another job is paused: %+v", v)
		}
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		if r := must[scheduler.RunView](t)(i.Wait(ctx, id)); r.Outcome != "succeeded" || time.Now().After(until) {
			t.Errorf("by hand while it is paused: %+v at %s", r, time.Now())
		}
		time.Sleep(time.Until(until.Add(5 * time.Second)))
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Paused || v.Pause != nil || v.Counts["paused"] != 10 {
			t.Errorf("after the pause: %+v", v)
		}
		_, err := i.Run(ctx, "") // as ranges have
		refused(t, err, scheduler.ErrUnknownRun)
		if err := i.Pause(ctx, "job", scheduler.PauseOptions{Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Pause == nil || v.Pause.Until != nil || v.Pause.Author != "unknown" {
			t.Errorf("without an end: %+v", v.Pause)
		}
		for range 2 { // resumed once more, it stays as it is
			if err := i.Resume(ctx, "job"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		c.end()
		s.check(t)
		got := outcomes(c.runs("job"))
		if got["paused(paused)"] != 13 || got["succeeded"] != 13 {
			t.Errorf("history %v, want 13 ticks paused, 12 run and one run by hand", got)
		}
	})
}

func TestTriggerAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		yearly := func(name string) jobs.Job {
			return jobs.Job{Name: name, Schedule: "0 12 1 7 *", Func: func(_ context.Context, r *jobs.Run) error {
				s.write(r)
				r.SetOutput([]byte("got " + string(r.Payload()) + "\xff"))
				return nil
			}}
		}
		c.start("a", scheduler.Config{}, yearly("job"), yearly("other"))
		time.Sleep(time.Second)
		at := time.Now().Add(30 * time.Second)
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{At: at, Payload: []byte(`{"n":1}`)}))
		r := must[scheduler.RunView](t)(i.Run(ctx, id))
		if r.Outcome != "running" || r.Reason != "pending until "+r.NotBefore.String() || r.Started != nil || r.LagMS != 0 ||
			!time.Time(*r.NotBefore).Equal(at) || !time.Time(*r.Due).Equal(at) || string(r.Payload) != `{"n":1}` {
			t.Errorf("before its time: %+v", r)
		}
		if list := must[[]scheduler.RunView](t)(i.Runs(ctx, scheduler.RunFilter{Job: "job"})); len(list) != 1 || list[0].Payload != nil {
			t.Errorf("in a list: %+v", list)
		}
		r = must[scheduler.RunView](t)(i.Wait(ctx, id))
		if late := time.Time(*r.Started).Sub(at); r.Outcome != "succeeded" || late < 0 || late > time.Second || !time.Time(*r.Tick).Equal(at) {
			t.Errorf("got %+v, late by %s", r, late)
		}
		if r.Output != "got {\"n\":1}\uFFFD" || string(r.Payload) != `{"n":1}` {
			t.Errorf("kept beside it: %q, %q", r.Output, r.Payload)
		}
		if list := must[[]scheduler.RunView](t)(i.Runs(ctx, scheduler.RunFilter{Job: "job"})); len(list) != 1 || list[0].Output != "" {
			t.Errorf("in a list: %+v", list)
		}

		once := scheduler.TriggerOptions{Unique: "day 1", At: time.Now().Add(5 * time.Second), Payload: []byte(`1`)}
		first := must[string](t)(i.Trigger(ctx, "job", once))
		for _, o := range []scheduler.TriggerOptions{once, {Unique: "day 1", Payload: []byte(`2`)}} {
			if again := must[string](t)(i.Trigger(ctx, "job", o)); again != first {
				t.Errorf("the same key made %s after %s", again, first)
			}
		}
		second := must[string](t)(i.Trigger(ctx, "other", once))
		if another := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{Unique: "day 2"})); another == first || another == second || first == second {
			t.Error("another key, or another job's, is the same run")
		}
		if r := must[scheduler.RunView](t)(i.Wait(ctx, first)); string(r.Payload) != "1" {
			t.Errorf("the second request's payload counts: %s", r.Payload)
		}
		if again := must[string](t)(i.Trigger(ctx, "job", once)); again != first {
			t.Error("asked for after its end, it is another run")
		}
		time.Sleep(10 * time.Second)
		if n := len(s.ticks("job")); n != 3 {
			t.Errorf("%d runs, want the one at a time and one for each key", n)
		}

		past := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		id = must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{At: past}))
		if r := must[scheduler.RunView](t)(i.Wait(ctx, id)); !time.Time(*r.Tick).Equal(past) || r.Outcome != "succeeded" {
			t.Errorf("for an instant that is over: %+v", r)
		}
		for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(-1), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			_, err := i.Trigger(ctx, "job", scheduler.TriggerOptions{At: at})
			refused(t, err, scheduler.ErrRefused, "1970 to 9999")
		}
		_, err := i.Trigger(ctx, "job", scheduler.TriggerOptions{Payload: []byte("{")})
		refused(t, err, scheduler.ErrRefused, "JSON")
		_, err = i.Trigger(ctx, "nope", scheduler.TriggerOptions{})
		refused(t, err, scheduler.ErrUnknownJob, "nope")
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i, cause := t.Context(), c.inspector(), make(chan error, 1)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "endless", Schedule: "0 12 1 7 *", Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			time.Sleep(2 * time.Second) // cleaning up
			return ctx.Err()
		}})
		time.Sleep(time.Second)
		going := must[string](t)(i.Trigger(ctx, "endless", scheduler.TriggerOptions{}))
		waiting := must[string](t)(i.Trigger(ctx, "endless", scheduler.TriggerOptions{Payload: []byte("7")}))
		time.Sleep(time.Second)

		what, err := i.Cancel(ctx, waiting, scheduler.CancelOptions{})
		if err != nil || what != scheduler.CancelRecorded {
			t.Fatalf("got %q, %v", what, err)
		}
		r := must[scheduler.RunView](t)(i.Run(ctx, waiting))
		if r.Outcome != "cancelled" || r.Reason != "cancelled by unknown" || r.Started != nil || r.Ended == nil || r.LagMS != 0 || r.DurationMS != 0 ||
			r.Token != "" || r.Tries != 0 || string(r.Payload) != "7" {
			t.Errorf("a run that never began: %+v", r)
		}

		third := must[string](t)(i.Trigger(ctx, "endless", scheduler.TriggerOptions{}))
		what, err = i.Cancel(ctx, going, scheduler.CancelOptions{Author: "ann", Reason: "too\nlong"})
		if err != nil || what != scheduler.CancelTold {
			t.Fatalf("got %q, %v", what, err)
		}
		asked := time.Now()
		if why := <-cause; !errors.Is(why, jobs.ErrCancelled) || time.Since(asked) > 500*time.Millisecond {
			t.Errorf("cause %v after %s", why, time.Since(asked))
		}
		if r := must[scheduler.RunView](t)(i.Run(ctx, going)); r.Outcome != "running" || r.Note != "to be cancelled by ann: too long" {
			t.Errorf("while it cleans up: %+v", r)
		}
		if r := must[scheduler.RunView](t)(i.Run(ctx, third)); r.Note != "" {
			t.Errorf("another run: %+v", r)
		}
		if r := must[scheduler.RunView](t)(i.Wait(ctx, going)); r.Outcome != "cancelled" || r.Reason != "cancelled by ann: too long" || r.Note != "" || r.Started == nil {
			t.Errorf("got %+v", r)
		}
		_, err = i.Cancel(ctx, "nope", scheduler.CancelOptions{})
		refused(t, err, scheduler.ErrUnknownRun, "nope")
		_, err = i.Cancel(ctx, "", scheduler.CancelOptions{})
		refused(t, err, scheduler.ErrUnknownRun)
	})
}

func TestCancelAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, s := c.inspector(), &sink{}
		c.start("a", scheduler.Config{}, eachSecond("job", s))
		time.Sleep(3*time.Second + 500*time.Millisecond)
		_, err := i.Cancel(t.Context(), c.runs("job")[0].Run, scheduler.CancelOptions{})
		refused(t, err, scheduler.ErrRefused, "has ended")
	})
}

func TestRerun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i := t.Context(), c.inspector()
		seen := make(chan *jobs.Run, 10)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "* * * * *", Func: func(_ context.Context, r *jobs.Run) error {
			seen <- r
			time.Sleep(2 * time.Second)
			if r.Attempt() < 3 {
				return fmt.Errorf("attempt %d", r.Attempt())
			}
			return nil
		}})
		first := <-seen
		_, err := i.Rerun(ctx, first.ID())
		refused(t, err, scheduler.ErrRefused, "has not ended")
		must[scheduler.RunView](t)(i.Wait(ctx, first.ID()))
		id := first.ID()
		for attempt := 2; attempt <= 3; attempt++ {
			next := must[string](t)(i.Rerun(ctx, id))
			if again := must[string](t)(i.Rerun(ctx, id)); again != next || next == id {
				t.Errorf("asked twice: %s and %s, of %s", next, again, id)
			}
			r := must[scheduler.RunView](t)(i.Wait(ctx, next))
			if r.Run != next || r.Attempt != attempt || r.Trigger != "rerun" || !time.Time(*r.Tick).Equal(first.Tick()) {
				t.Errorf("got %+v", r)
			}
			if want := map[int]string{2: "failed", 3: "succeeded"}[attempt]; r.Outcome != want || (<-seen).Attempt() != attempt {
				t.Errorf("attempt %d: %s", attempt, r.Outcome)
			}
			if again := must[string](t)(i.Rerun(ctx, id)); again != next {
				t.Error("asked again after its end, it is another run")
			}
			id = next
		}
		time.Sleep(5 * time.Second)
		if len(seen) != 0 {
			t.Error("it ran more often than it was asked to")
		}
		if r := must[scheduler.RunView](t)(i.Run(ctx, first.ID())); r.Attempt != 1 || r.Outcome != "failed" {
			t.Errorf("the first attempt: %+v", r)
		}

		hand := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{Payload: []byte(`"p"`)}))
		must[scheduler.RunView](t)(i.Wait(ctx, hand))
		r := must[scheduler.RunView](t)(i.Wait(ctx, must[string](t)(i.Rerun(ctx, hand))))
		if string(r.Payload) != `"p"` || r.Attempt != 2 {
			t.Errorf("the payload of a run by hand: %+v", r)
		}
		if r := must[scheduler.RunView](t)(i.Run(ctx, hand)); r.Run != hand || r.Attempt != 1 {
			t.Errorf("by its own id: %+v", r)
		}
		_, err = i.Rerun(ctx, "nope")
		refused(t, err, scheduler.ErrUnknownRun, "nope")
	})
}
