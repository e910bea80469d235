package lane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// TestReap: the run of a node that has died is abandoned when its lease has lapsed for its ttl.
func TestReap(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		time.Sleep(time.Until(time.UnixMilli(w.cursor("a"))))
		b := w.claimOf("a", "r1")
		if got, err := claim.Send(t.Context(), w.led.At(w.of(0).epochs.EpochID(0)), claim.Claimer{ID: "dead", Name: "dead"}, time.Now().UnixMilli(), b.Claims); err != nil || got[0].Verdict != claim.Granted {
			t.Fatal(got, err)
		}
		w.eventually("the run is abandoned", func() bool { return w.noted(func() bool { return slices.Equal(w.abandoned, []string{"r1"}) }) })
		if rows := w.rows("a"); !slices.Equal(rows, []string{"abandoned"}) {
			t.Error(rows)
		}
	})
}

// TestCancelled: a run that a person cancels is ended on its node, also while the node drains.
func TestCancelled(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		w.run("a", "r1")
		w.Slots.Retake() // the run's
		w.ends[0]()      // the node sweeps no more
		if _, err := operate.Cancel(t.Context(), w.led, "a", "r1", "ann", "too long"); err != nil {
			t.Fatal(err)
		}
		w.eventually("the run is cancelled", func() bool { return w.noted(func() bool { return slices.Contains(w.cancelled, "r1") }) })
	})
}

// TestUnrunnable: ticks of a job that no node can run are recorded as missed a minute after the first check, and the checks become rarer. When a
// node can run the job again, its next check comes at once.
func TestUnrunnable(t *testing.T) {
	own := jobs.Job{Name: "a", Schedule: "* * * * *", StartWithin: 30 * time.Second}
	inNode(t, false, []jobs.Job{own}, func(t *testing.T, w *node) {
		held := w.Digests("")
		w.holdIn()
		w.eventually("the job has no node", func() bool { return w.NoNodes() == 1 })
		time.Sleep(5 * time.Minute)
		w.eventually("its ticks are missed", func() bool { return w.noted(func() bool { return w.skipped > 0 }) })
		if !strings.Contains(w.logged(), `why="no living node holds it"`) || !slices.Contains(w.rows("a"), "missed") {
			t.Errorf("%v, the log:\n%s", w.rows("a"), w.logged())
		}
		w.holdIn(held...)
		w.eventually("the job has a node again", func() bool { return w.NoNodes() == 0 })
	})
}

// TestFollowers: a job that follows another one is notified of an end, and its run is pending. A follower that no node holds misses the tick.
func TestFollowers(t *testing.T) {
	for name, held := range map[string]bool{"held": true, "by no node": false} {
		t.Run(name, func(t *testing.T) {
			inNode(t, false, []jobs.Job{minutely[0], {Name: "b", After: []string{"a"}}}, func(t *testing.T, w *node) {
				if err := follow.Follow(t.Context(), w.led, 0, "a", "b"); err != nil {
					t.Fatal(err)
				}
				if !held {
					w.holdIn([]string{}...)
				}
				w.end(w.run("a", "r1"), jobs.OutcomeSucceeded)
				if !held {
					w.eventually("the tick is missed", func() bool { return slices.Contains(w.rows("b"), "missed") })
					if !strings.Contains(w.logged(), "no living node holds this job, which follows another one") {
						t.Error(w.logged())
					}
					return
				}
				w.eventually("its run is pending", func() bool {
					found, err := query.NewScanner(w.led).Scan(t.Context(), time.Now().UnixMilli(), 0, 0)
					return err == nil && len(found.Pending) == 1 && found.Pending[0].Job == "b" && len(found.Events) == 0
				})
			})
		})
	}
}

// TestBackfiller: a backfill's runs are put into pending one after the other, and its end is recorded.
func TestBackfiller(t *testing.T) {
	for name, cancelled := range map[string]bool{"done": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			inNode(t, false, minutely, func(t *testing.T, w *node) {
				ctx, j := t.Context(), w.Jobs.Named("a")
				time.Sleep(3 * time.Minute)
				from := time.Now().Truncate(time.Minute).Add(-2 * time.Minute).UnixMilli()
				if _, err := backfill.Begin(ctx, w.led, ledger.Backfill{Job: "a", ID: "b1", From: from, To: from + 60_000, Parallel: 1, Total: 2}, j.Digest); err != nil {
					t.Fatal(err)
				}
				state := func() (b ledger.Backfill) {
					all, _, err := backfill.List(ctx, w.led, "a")
					if err != nil || len(all) != 1 {
						t.Fatal(all, err)
					}
					return all[0]
				}
				w.eventually("a tick is pending", func() bool { return len(state().Going) == 1 })
				if cancelled {
					if _, err := backfill.Cancel(ctx, w.led, "a", "ann", ""); err != nil {
						t.Fatal(err)
					}
					w.eventually("it is cancelled", func() bool { return state().State == ledger.BackfillCancelled && len(state().Going) == 0 })
					return
				}
				last := ""
				for range 2 {
					w.eventually("a tick is pending", func() bool { return len(state().Going) == 1 && state().Going[0].Run != last })
					last = state().Going[0].Run
					b := w.claimOf("a", last)
					b.Claims[0] = claim.Claim{Job: "a", Digest: j.Digest, Run: b.Claims[0].Run, TTL: ttl, Attempts: 1, Shards: 1, Pending: true}
					if w.Claim(b); (<-w.answers).Answers[0].Verdict != claim.Granted {
						t.Fatalf("%+v", b.Answers)
					}
					all := w.granted()
					w.end(all[len(all)-1], jobs.OutcomeSucceeded)
				}
				w.eventually("it is done", func() bool { return state().State == ledger.BackfillDone })
				if !strings.Contains(w.logged(), "backfill ended") {
					t.Error(w.logged())
				}
			})
		})
	}
}

// TestRecords: a partition that has lost records begins another epoch, in which nodes store them again.
func TestRecords(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		g := w.run("a", "r1")
		before := w.Changes()
		if n, err := w.client.Del(t.Context(), "{escapement:0}:runs").Result(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		w.eventually("another epoch is noticed", func() bool { return w.Changes() > before })
		w.eventually("the node claims again", func() bool { return w.Holding() == nil })
		w.end(g, jobs.OutcomeSucceeded)
		w.eventually("the end is recorded", func() bool { return slices.Contains(w.rows("a"), "succeeded") })
		if !strings.Contains(w.logged(), "Redis has lost records") {
			t.Error(w.logged())
		}
	})
}

// TestTurnsOfARelay: the node that hashing puts first delivers an event at once, each other one in its turn.
func TestTurnsOfARelay(t *testing.T) {
	nodes := []sharding.Node{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}
	rank := sharding.Rank("up", nodes)
	for i, n := range rank {
		r := &relay{id: n.ID, grace: time.Second, nodes: living(nodes)}
		for age, want := range map[int64]bool{0: i == 0, int64(i) * 1000: true, int64(i)*1000 - 1: i == 0, TakeoverMax * 1000: true} {
			if got := r.myTurn(ledger.Event{Upstream: "up"}, age); got != want {
				t.Errorf("rank %d, an event of %d ms: %t", i, age, got)
			}
		}
	}
}

// living are nodes that hold no job.
type living []sharding.Node

func (l living) Living() []sharding.Node                       { return l }
func (living) NoNode(string, string, map[string]string) string { return "no living node holds it" }
func (living) Digests(string) []string                         { return nil }
func (living) Owns(*work.Job) bool                             { return false }
