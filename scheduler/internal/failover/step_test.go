package failover

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// emptied has a node claim, and then lose its Redis' data.
func (n *node) emptied(t *testing.T) {
	t.Helper()
	n.release(n.changes)
	if err := n.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	n.Notice(n.sample(t))
}

// peer has the roster show that another node has asserted, or restored, its runs in this node's epoch.
func (n *node) peer(asserted, restored bool) {
	m := roster.Member{Node: sharding.Node{ID: "n2"}, Asserted: epoch.Nobody, Restored: epoch.Nobody}
	if asserted {
		m.Asserted = n.fingerprint()
	}
	if restored {
		m.Restored = n.fingerprint()
	}
	n.Seen([]roster.Member{m}, []sharding.Node{{ID: n.Config.ID}, m.Node})
}

// TestStep: how far a node goes with an epoch, by what the other node has reported.
func TestStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		up                 time.Duration // how long the server has run when the node joins
		lost               bool          // the node has claimed, and Redis was emptied
		asserted, restored bool          // the other node's runs
		over               bool          // the hold is over
		want               State
		err                error
	}{
		"joins, the other is open":              {time.Hour, false, true, true, false, Open, nil},
		"joins, the other has only asserted":    {time.Hour, false, true, false, false, Waiting, ErrYoung},
		"joins a young server":                  {0, false, true, true, false, Waiting, ErrYoung},
		"joins, the hold is over":               {0, false, false, false, true, Open, nil},
		"loses, the other has reported nothing": {0, true, false, false, false, Waiting, ErrHolding},
		"loses, the other has asserted":         {0, true, true, false, false, Waiting, ErrHolding},
		"loses, the other is in place":          {0, true, true, true, false, Open, nil},
		"loses, the hold is over":               {0, true, false, false, true, Open, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, func(s *ledger.Sample) { s.Up = c.up })
			if c.lost {
				n.emptied(t)
				if !wait.Drop(n.lost) {
					t.Error("no signal that data may be lost")
				}
				if next := n.Step(t.Context()); next != AssertEvery || n.state() != Asserting {
					t.Fatalf("without an incarnation it is %v", n.state())
				}
				n.Notice(n.sample(t)) // the incarnation that the step has made
			}
			n.peer(c.asserted, c.restored)
			if c.over {
				n.since = n.since.Add(-hold)
			}
			next := n.Step(t.Context())
			if n.state() != c.want || !errors.Is(n.Err(), c.err) || next != map[bool]time.Duration{true: SampleEvery, false: AssertEvery}[c.want == Open] {
				t.Errorf("it is %v: %v, and checks again after %s", n.state(), n.Err(), next)
			}
			if asserted, restored := n.Servers(); asserted != n.fingerprint() || restored != asserted {
				t.Errorf("it reports %q and %q", asserted, restored)
			}
			if resumed := n.calls.resumed == 1; resumed != (c.lost && c.want == Open) || n.Blocks(0) != (c.want != Open) {
				t.Errorf("grants are resumed: %t, blocked: %t", resumed, n.Blocks(0))
			}
		})
	}
}

// The runs of a node, and its recent ends, are stored again. A run waits while the tick before it is
// another node's to report, until all have reported: then the gap is recorded.
func TestRunsAreRestored(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	ctx := t.Context()
	j := jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"})
	second := n.Clock.Now().Truncate(time.Second).Add(-9 * time.Second).UnixMilli()
	going, ended := ranAt(j, second+4000, "r2", "n1"), ranAt(j, second, "r1", "n1")
	ended.Lease.Token, going.Lease.Token = 1, 5
	n.Reporter.Runs = grants{going}
	report := settle.Report{Job: "a", Run: "r1", Token: 1, Outcome: jobs.OutcomeSucceeded, Started: second, Ended: second + 10}
	if !n.Ended(n.EpochID(0), 0, &Ending{Grant: ended, Report: report}) || n.Ended("another", 0) {
		t.Fatal("an end is noted in the current epoch only")
	}
	n.emptied(t)
	n.Step(ctx) // makes the incarnation
	n.Notice(n.sample(t))
	n.peer(false, false)
	if n.Step(ctx); n.state() != Restoring || n.Asserted() != true {
		t.Fatalf("while its job is not registered it is %v, failed: %v", n.state(), n.calls.failed)
	}
	if _, placed := n.Keeps(0, "r2"); placed {
		t.Error("a run that is not restored is renewed")
	}
	n.define(t, j.Job, second)
	if n.Step(ctx); n.state() != Restoring || n.cursor(t, "a") != second+1000 {
		t.Fatalf("behind the ticks of others it is %v, the cursor %d", n.state(), n.cursor(t, "a")-second)
	}
	n.peer(true, false)
	if n.Step(ctx); n.state() != Waiting || n.calls.restored == 0 {
		t.Fatalf("after the reports of the others it is %v, failed: %v", n.state(), n.calls.failed)
	}
	if _, placed := n.Keeps(0, "r2"); !placed {
		t.Error("a restored run is not renewed")
	}
	n.peer(true, true)
	if n.Step(ctx); n.state() != Open {
		t.Fatal(n.state())
	}
	rows, _, err := query.History(ctx, n.led, []string{"a"})
	if err != nil || len(rows["a"]) != 2 || rows["a"][0].Run != "r1" && rows["a"][1].Run != "r1" {
		t.Errorf("%+v, %v: want the end of r1 and the gap behind it", rows["a"], err)
	}
	if got := n.cursor(t, "a"); got != second+5000 {
		t.Errorf("the cursor is %d s after the first tick", (got-second)/1000)
	}
}

// While Redis does not answer, each report fails with its role, and nothing is claimed. An answer of another epoch requests an early check.
func TestStepFails(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	n.Reporter.Runs = grants{ranAt(jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"}), 1000, "r1", "n1")}
	n.release(n.changes)
	n.Notice(ledger.Sample{Server: "another", Incarnations: map[int]string{0: "x"}})
	n.peer(true, true)
	check := make(chan struct{}, 1)
	n.check = check
	if n.Step(t.Context()); n.state() != Asserting || !wait.Drop(check) || len(n.calls.failed) != 0 {
		t.Errorf("in an epoch that is over already: %v, failed %v", n.state(), n.calls.failed)
	}
	n.redis.Stop()
	if n.Step(t.Context()); n.state() != Asserting || len(n.calls.failed) == 0 {
		t.Errorf("without an answer: %v, failed %v", n.state(), n.calls.failed)
	}
}

// TestBegins: a granted run begins in the last epoch that was noticed, and only there.
func TestBegins(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	j := jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"})
	g := ranAt(j, 1000, "r1", "n1")
	n.Reporter.Cursors.Registered(j, 1000, 1000)
	if n.Begins(g) {
		t.Error("a run of an unknown epoch begins")
	}
	if g.Epoch = n.EpochID(0); !n.Begins(g) {
		t.Error("a run of this epoch does not begin")
	}
	b := &work.Batch{Epoch: "another", Jobs: []*work.Job{j}, Claims: []claim.Claim{{From: 2000}}, Answers: []claim.Answer{{Verdict: claim.Stale, Cursor: 9000}}}
	cursor := func() int64 { return n.Reporter.Cursors.of(j).cursor }
	if n.Answered(b); cursor() != 2000 {
		t.Errorf("after a grant, and an answer of another epoch, the cursor is %d", cursor())
	}
	b.Epoch = g.Epoch
	if n.Answered(b); cursor() != 9000 {
		t.Errorf("after an answer, the cursor is %d", cursor())
	}
}

// A backfill is stored again as this node last saw it.
func TestBackfillsAreRestored(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	ctx := t.Context()
	j := jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"})
	from := n.Clock.Now().Truncate(time.Second).Add(-time.Hour).UnixMilli()
	n.define(t, j.Job, from+7_200_000)
	if _, err := backfill.Begin(ctx, n.led, ledger.Backfill{Job: "a", ID: "b1", From: from, To: from + 2000, Parallel: 1, Total: 3}, j.Digest); err != nil {
		t.Fatal(err)
	}
	all, _, err := backfill.List(ctx, n.led, "a")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	known := n.Reporter.Backfills
	known.Fed(0, all[0], false) // before the first sweep nothing is known
	if known.Swept(0, all); len(known.Missing(0, all)) != 0 || len(known.Missing(0, nil)) != 1 {
		t.Fatal("missing is what a sweep has not found")
	}
	known.Fed(0, all[0], false)
	n.emptied(t)
	n.Step(ctx) // makes the incarnation
	n.Notice(n.sample(t))
	n.peer(true, true)
	n.Step(ctx)
	if all, _, err = backfill.List(ctx, n.led, "a"); err != nil || len(all) != 1 || all[0].ID != "b1" || n.state() != Open {
		t.Errorf("%+v, %v; failed %v", all, err, n.calls.failed)
	}
	if known.Fed(0, all[0], true); len(known.Missing(0, nil)) != 0 {
		t.Error("a backfill that has ended is missing")
	}
}
