package notify_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/notify"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestOnceForThreeNodes: a failing job is notified once, however often it fails and however many
// nodes there are, and so is its recovery.
func TestOnceForThreeNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		var box inbox
		for i := range 3 {
			name := fmt.Sprintf("n%d", i)
			w.node(name, sick("report", &broken), sick("other", new(atomic.Bool)))
			w.notifier(notify.Config{Node: name, Targets: []notify.Target{box.target("team", name)}})
		}
		time.Sleep(90 * time.Second)
		box.want(t)
		broken.Store(true)
		time.Sleep(5 * time.Minute)
		box.want(t, "report failed")
		e := box.all()[0].Events[0]
		if e.Error != "disk full" || e.Outcome != "failed" || e.Run == "" || e.Tick.IsZero() || !strings.Contains(e.Text, "report failed: tick") {
			t.Errorf("event %+v", e)
		}
		broken.Store(false)
		time.Sleep(5 * time.Minute)
		box.want(t, "report failed", "report failed over")
	})
}

// TestBetweenTwoLooks: a failure is notified though a success has followed it before the next look.
func TestBetweenTwoLooks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var runs atomic.Int32
		var box inbox
		w.node("n", jobs.Job{Name: "quick", Schedule: "* * * * * *", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error {
			if runs.Add(1) == 60 {
				return fmt.Errorf("once")
			}
			return nil
		}})
		w.notifier(notify.Config{Every: 30 * time.Second, Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(3 * time.Minute)
		box.want(t, "quick failed", "quick failed over")
	})
}

// TestDiesBeforeSending: a notifier dies after storing a message and before sending it. Another
// notifier sends it, once, with its id.
func TestDiesBeforeSending(t *testing.T) {
	for name, die := range map[string]func(*notifier){"cut off": (*notifier).kill, "stopped": func(n *notifier) { go n.stop() }} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var broken atomic.Bool
				broken.Store(true)
				var box inbox
				claimed := make(chan notify.Message, 1)
				w.node("n", sick("report", &broken))
				first := w.notifier(notify.Config{Targets: []notify.Target{{Name: "team", Func: func(ctx context.Context, m notify.Message) error {
					claimed <- m
					<-ctx.Done()
					return ctx.Err()
				}}}})
				m := <-claimed
				die(first)
				w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "second")}})
				time.Sleep(5 * time.Minute)
				box.want(t, "report failed")
				if got := box.all()[0].ID; got != m.ID {
					t.Errorf("sent as %s, claimed as %s", got, m.ID)
				}
			})
		})
	}
}

// TestDiesBeforeMarking: a notifier dies after sending a message, which is then sent again with the
// same id.
func TestDiesBeforeMarking(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		var box inbox
		var first *notifier
		sent := make(chan struct{})
		w.node("n", sick("report", &broken))
		first = w.notifier(notify.Config{Targets: []notify.Target{{Name: "team", Func: func(_ context.Context, m notify.Message) error {
			box.put("first", m)
			first.kill()
			close(sent)
			return nil
		}}}})
		<-sent
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "second")}})
		time.Sleep(5 * time.Minute)
		box.want(t, "report failed", "report failed")
		if all := box.all(); len(all) == 2 && all[0].ID != all[1].ID {
			t.Errorf("ids %s and %s", all[0].ID, all[1].ID)
		}
	})
}

// TestTakeover: the next notifier sends the events of a time without a notifier, also of problems
// that are over, and repeats none.
func TestTakeover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var report, other atomic.Bool
		report.Store(true)
		var box inbox
		cfg := notify.Config{Targets: []notify.Target{box.target("team", "n")}}
		w.node("n", sick("report", &report), sick("other", &other))
		first := w.notifier(cfg)
		time.Sleep(150 * time.Second) // between two ticks
		box.want(t, "report failed")
		first.stop()
		other.Store(true)
		time.Sleep(time.Minute)
		other.Store(false)
		time.Sleep(2 * time.Minute)
		w.notifier(cfg)
		time.Sleep(2 * time.Minute)
		box.want(t, "report failed", "other failed", "other failed over")
	})
}

// TestUnreadable: an unreadable record of one job or target holds up no other one.
func TestUnreadable(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var report atomic.Bool
		report.Store(true)
		var box inbox
		client := w.server.Client()
		defer client.Close()
		if err := client.HSet(t.Context(), "{escapement}:notified", "other", "9|?", ":to team", "9|?", ":looked", "?").Err(); err != nil {
			t.Fatal(err)
		}
		w.node("n", sick("report", &report))
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(150 * time.Second)
		box.want(t, "report failed")
	})
}

// TestFirstLook: the first look notifies current problems, and nothing else.
func TestFirstLook(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var now, before atomic.Bool
		now.Store(true)
		before.Store(true)
		var box inbox
		w.node("n", sick("now", &now), sick("before", &before))
		time.Sleep(2 * time.Minute)
		before.Store(false)
		time.Sleep(2 * time.Minute)
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(2 * time.Minute)
		box.want(t, "now failed")
	})
}

// TestGrouping: simultaneous events are one message a target; a target that tracks problems gets
// each by itself.
func TestGrouping(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		var list []jobs.Job
		for i := range 5 {
			list = append(list, sick(fmt.Sprintf("job-%d", i), &broken))
		}
		var box, single, some inbox
		one := single.target("pager", "n")
		one.Each = true
		few := some.target("few", "n")
		few.Jobs, few.On = "job-[12]", []notify.Kind{notify.Failed}
		w.node("n", list...)
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n"), one, few}})
		time.Sleep(90 * time.Second)
		broken.Store(true)
		time.Sleep(2 * time.Minute)
		box.want(t, "job-0 failed", "job-1 failed", "job-2 failed", "job-3 failed", "job-4 failed")
		some.want(t, "job-1 failed", "job-2 failed")
		if n := len(box.all()); n != 1 {
			t.Errorf("%d messages", n)
		}
		if n := len(single.all()); n != 5 {
			t.Errorf("%d messages, one for each event", n)
		}
		if text := box.all()[0].Text; !strings.HasPrefix(text, "[escapement] 5 events\n- job-0 failed: tick ") {
			t.Error(text)
		}
	})
}

// TestAtMost: a target gets so many messages an hour, and then one with the number of events held
// back.
func TestAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var runs atomic.Int32
		w.node("n", jobs.Job{Name: "flaps", Schedule: "* * * * *", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error {
			if runs.Add(1)%2 == 0 {
				return fmt.Errorf("again")
			}
			return nil
		}})
		w.notifier(notify.Config{AtMost: 4, Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(50 * time.Minute)
		if n := len(box.all()); n != 4 {
			t.Errorf("%d messages in 50 minutes", n)
		}
		time.Sleep(20 * time.Minute)
		all := box.all()
		if len(all) < 5 {
			t.Fatalf("%d messages in 70 minutes", len(all))
		}
		m := all[4]
		if !m.HeldBack || len(m.Events) != 50 || m.More < 5 || !strings.Contains(m.Text, "held back by the limit") || !strings.Contains(m.Text, "more, not listed") {
			t.Errorf("held back %v, %d events and %d more: %.200s", m.HeldBack, len(m.Events), m.More, m.Text)
		}
	})
}

// TestDeadline: a job that neither fails nor succeeds is notified when its deadline is over.
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var works atomic.Bool
		works.Store(true)
		w.node("n", jobs.Job{
			Name: "stuck", Schedule: "* * * * *", TTL: 5 * time.Second, Expect: jobs.Expect{SuccessWithin: 30 * time.Minute},
			Func: func(ctx context.Context, _ *jobs.Run) error {
				for !works.Load() {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Minute):
					}
				}
				return nil
			},
		})
		cfg := notify.Config{Targets: []notify.Target{box.target("team", "n")}}
		first := w.notifier(cfg)
		time.Sleep(10 * time.Minute)
		works.Store(false)
		time.Sleep(25 * time.Minute)
		first.stop() // the next notifier still has the last success
		w.notifier(cfg)
		time.Sleep(4 * time.Minute)
		box.want(t)
		time.Sleep(4 * time.Minute)
		box.want(t, "stuck no_success")
		if text := box.all()[0].Text; !strings.Contains(text, "and one is expected within 30m") {
			t.Error(text)
		}
		works.Store(true)
		time.Sleep(4 * time.Minute)
		box.want(t, "stuck no_success", "stuck no_success over")
	})
}

// TestNeverSucceeded: the deadline of a job without any success counts from the first look at it,
// also across notifiers.
func TestNeverSucceeded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var broken atomic.Bool
		broken.Store(true)
		job := sick("new", &broken)
		job.Expect.SuccessWithin = 30 * time.Minute
		w.node("n", job)
		target := box.target("team", "n")
		target.On = []notify.Kind{notify.NoSuccess}
		for range 4 {
			n := w.notifier(notify.Config{Targets: []notify.Target{target}})
			time.Sleep(10 * time.Minute)
			n.stop()
		}
		box.want(t, "new no_success")
	})
}

// TestOverdue: a job that no living node can run is notified, a paused one is not.
func TestOverdue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var fine atomic.Bool
		ctx := context.Background()
		gone := w.node("n1", sick("alone", &fine), sick("paused", &fine), sick("both", &fine))
		w.node("n2", sick("both", &fine))
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(90 * time.Second)
		if err := w.client().Pause(ctx, "paused", ops.PauseOptions{Reason: "quiet"}); err != nil {
			t.Fatal(err)
		}
		gone()
		time.Sleep(5 * time.Minute)
		box.want(t, "alone overdue")
		w.node("n3", sick("alone", &fine))
		time.Sleep(5 * time.Minute)
		got := box.events()
		if len(got) < 2 || !strings.Contains(fmt.Sprint(got), "alone overdue over") || strings.Contains(fmt.Sprint(got), "paused") {
			t.Errorf("events %q", got)
		}
	})
}

// TestAbandoned: a run whose node dies is notified.
func TestAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		client := w.server.Client()
		reg := jobs.NewRegistry()
		started := make(chan struct{}, 10)
		lasting := jobs.Job{Name: "lasting", Schedule: "*/10 * * * *", TTL: 5 * time.Second, Func: func(ctx context.Context, r *jobs.Run) error {
			started <- struct{}{}
			if r.Node() == "dies" {
				<-ctx.Done()
			}
			return nil
		}}
		reg.MustAdd(lasting)
		n, err := scheduler.New(client, reg, scheduler.Config{Name: "dies", Logger: w.logger(), Revision: "1"})
		if err != nil {
			t.Fatal(err)
		}
		w.run(func(ctx context.Context) { _ = n.Run(ctx) })
		<-started
		_ = client.Close()
		w.node("lives", lasting)
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(2 * time.Minute)
		box.want(t, "lasting abandoned")
		time.Sleep(10 * time.Minute)
		box.want(t, "lasting abandoned", "lasting abandoned over")
	})
}

// TestShards: a sharded tick counts as a whole: a shard that succeeds is no recovery, and a failed
// shard is notified with its tick.
func TestShards(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var broken atomic.Bool
		broken.Store(true)
		w.node("n", jobs.Job{Name: "parts", Schedule: "* * * * *", TTL: 5 * time.Second, Shards: 4, Func: func(ctx context.Context, r *jobs.Run) error {
			select {
			case <-time.After(time.Duration(r.Shard()) * 7 * time.Second):
			case <-ctx.Done():
			}
			if r.Shard() == 1 && broken.Load() {
				return fmt.Errorf("shard 1")
			}
			return nil
		}})
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(5 * time.Minute)
		box.want(t, "parts failed")
		broken.Store(false)
		time.Sleep(3 * time.Minute)
		box.want(t, "parts failed", "parts failed over")
	})
}

// TestHangs: a target that hangs or refuses holds up no other target.
func TestHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		var box, late inbox
		var tried atomic.Int32
		w.node("n", sick("report", &broken))
		w.notifier(notify.Config{Targets: []notify.Target{
			{Name: "hangs", Func: func(ctx context.Context, _ notify.Message) error { <-ctx.Done(); return ctx.Err() }},
			{Name: "refuses", Func: func(_ context.Context, m notify.Message) error {
				if tried.Add(1) <= 4 {
					return fmt.Errorf("not now")
				}
				late.put("n", m)
				return nil
			}},
			box.target("team", "n"),
		}})
		time.Sleep(90 * time.Second)
		broken.Store(true)
		time.Sleep(50 * time.Second) // the tick after 30 s, and the group's 10 s
		box.want(t, "report failed")
		broken.Store(false)
		time.Sleep(time.Minute)
		box.want(t, "report failed", "report failed over")
		time.Sleep(2 * time.Minute)
		late.want(t, "report failed", "report failed over")
		if !strings.Contains(w.logs.String(), "a notification could not be sent") {
			t.Error("nothing is logged of the refusal")
		}
	})
}

// TestRemoved: a job's notified problems are over when the job is removed.
func TestRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var broken atomic.Bool
		broken.Store(true)
		stop := w.node("n", sick("report", &broken))
		w.node("m", sick("other", new(atomic.Bool)))
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(100 * time.Second)
		stop()
		time.Sleep(10 * time.Second)
		if err := w.client().Delete(context.Background(), "report", time.Time{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		box.want(t, "report failed", "report failed over")
	})
}
