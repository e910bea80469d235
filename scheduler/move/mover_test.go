package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// whole moves a namespace and compares both sides.
func whole(t *testing.T, m *Mover, p *people) {
	t.Helper()
	ctx := t.Context()
	before := dump(t, m.from)
	plan := must(m.Plan(ctx))
	if len(plan.InTheWay) != 0 || plan.Jobs != 14 || plan.Rows < 70 || plan.Pending != 5 || plan.Ticks != 1 || plan.Bytes == 0 || plan.Drains != 1 || plan.Seconds != 2 {
		t.Fatalf("plan: %+v", plan)
	}
	if d := differ(before, dump(t, m.from)); len(d) > 0 || len(dump(t, m.to)) > 0 {
		t.Fatalf("plan changed something: %v", d)
	}
	for _, step := range []struct {
		do   func(context.Context) (Status, error)
		next Next
	}{{func(ctx context.Context) (Status, error) { return m.Seal(ctx, SealOptions{}) }, NextCopy}, {m.Copy, NextOpen}, {m.Open, NextDone}} {
		for range 2 { // and once too often
			st, err := step.do(ctx)
			if err != nil || st.Next != step.next {
				t.Fatalf("next %s, want %s: %v; %+v", st.Next, step.next, err, st)
			}
			if step.next == NextDone {
				break
			}
		}
	}
	if d := differ(content(before), content(dump(t, m.to))); len(d) > 0 {
		t.Fatalf("%d differences:\n%s", len(d), strings.Join(d, "\n"))
	}
	moved(t, m, p)
}

// moved checks that the namespace is whole at the other side.
func moved(t *testing.T, m *Mover, p *people) {
	t.Helper()
	ctx := t.Context()
	there := must(ledger.OpenExisting(ctx, m.to, ledger.Config{Namespace: ns}))
	if !ledger.HasMoved(must(p.led.Control(ctx)), must(there.Control(ctx))) {
		t.Error("nodes cannot tell that the namespace has moved")
	}
	c := p.tick(claim.Claim{Job: "ran", Digest: "d:ran", Run: "ran-2", TTL: time.Minute, Attempts: 1}, p.now-100_000+1)
	got, err := claim.Send(ctx, p.led, by, must2(p.led.Time(ctx)).UnixMilli(), []claim.Claim{c})
	if err != nil || got[0].Verdict != claim.Closed {
		t.Errorf("claim at the old side: %+v, %v", got, err)
	}
	if _, err := operate.Trigger(ctx, p.led, "ran", operate.TriggerRequest{Run: "x"}); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("trigger at the old side: %v", err)
	}
	was := must(query.Job(ctx, p.led, "ran")).Token
	got, err = claim.Send(ctx, there, by, must2(there.Time(ctx)).UnixMilli(), []claim.Claim{c})
	if err != nil || got[0].Verdict != claim.Granted || got[0].Token <= was {
		t.Fatalf("claim at the new side: %+v, %v; the last token was %d", got, err, was)
	}
	if _, err := settle.Settle(ctx, there, []settle.Report{{Job: "ran", Run: "ran-2", Outcome: jobs.OutcomeSucceeded, Ended: p.now}}); err != nil {
		t.Fatal(err)
	}
	if id := must(operate.Trigger(ctx, there, "asked", operate.TriggerRequest{Unique: "order 1"})); id != operate.UniqueRun("asked", "order 1") {
		t.Error(id)
	}
	for _, job := range must(query.Jobs(ctx, there)) {
		if job.Err != nil {
			t.Error(job.Err)
		}
	}
	for _, open := range must(query.InFlight(ctx, there, "asked")) {
		if open.Job == "asked" {
			t.Errorf("a request that is remembered runs again: %+v", open)
		}
	}
}

func TestMoveEmbedded(t *testing.T) {
	for _, parts := range [][2]int{{2, 3}, {4, 1}, {3, 0}} {
		_, a := redistest.StartEmbedded(t)
		_, b := redistest.StartEmbedded(t)
		whole(t, mover(t, a, b, Config{Partitions: parts[1]}), populate(t, a, parts[0]))
	}
}

// TestMoveToCluster moves a namespace from a server to a Cluster, and waits for its replicas.
func TestMoveToCluster(t *testing.T) {
	a := redistest.Start(t).Client(t)
	whole(t, mover(t, a, redistest.StartCluster(t).Client(t), Config{Partitions: 7}), populate(t, a, 3))
}

// TestMoveBack moves a namespace there and back again, and there once more, with runs in between.
func TestMoveBack(t *testing.T) {
	ctx := t.Context()
	_, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	p := populate(t, a, 2)
	there, back := mover(t, a, b, Config{Partitions: 3}), mover(t, b, a, Config{})
	whole(t, there, p)
	for i, m := range []*Mover{back, there, back} {
		before := dump(t, m.from)
		if _, err := must(New(m.from, m.to, Config{Namespace: ns, Partitions: 9})).Seal(ctx, SealOptions{}); !errors.Is(err, ledger.ErrRefused) {
			t.Fatalf("other partitions than there once were: %v", err)
		}
		if i == 1 { // an undone one leaves the way free
			must(m.Seal(ctx, SealOptions{}))
			must(m.Copy(ctx))
			must(m.Abort(ctx))
		}
		must(m.Seal(ctx, SealOptions{}))
		must(m.Copy(ctx))
		if st := must(m.Open(ctx)); st.Next != NextDone {
			t.Fatalf("%+v", st)
		}
		if d := differ(content(before), content(dump(t, m.to))); len(d) > 0 {
			t.Fatalf("move %d: %d differences:\n%s", i, len(d), strings.Join(d, "\n"))
		}
		led := must(ledger.OpenExisting(ctx, m.to, ledger.Config{Namespace: ns}))
		must(operate.Trigger(ctx, led, "plain", operate.TriggerRequest{Run: m.cfg.Namespace + string(rune('a'+i))}))
	}
}

// wants expects a step to be refused, with the right next step in its words.
func wants(t *testing.T, name string, err error, words string) {
	t.Helper()
	if !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), words) {
		t.Fatalf("%s: %v; want it refused with %q", name, err, words)
	}
}

func second(_ Status, err error) error { return err }

func TestWrongOrder(t *testing.T) {
	ctx := t.Context()
	ea, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	m := mover(t, a, b, Config{Partitions: 3})
	if _, err := m.Plan(ctx); !errors.Is(err, ledger.ErrNoNamespace) {
		t.Errorf("unknown namespace: %v", err)
	}
	if _, err := m.Seal(ctx, SealOptions{}); !errors.Is(err, ledger.ErrNoNamespace) {
		t.Errorf("unknown namespace: %v", err)
	}
	p := populate(t, a, 2)
	wants(t, "copy first", second(m.Copy(ctx)), "move seal")
	wants(t, "open first", second(m.Open(ctx)), "move seal")
	wants(t, "abort of nothing", second(m.Abort(ctx)), "no move")
	other := ea.Client()
	t.Cleanup(func() { _ = other.Close() })
	wants(t, "from = to", second(mover(t, a, other, Config{}).Seal(ctx, SealOptions{})), "same Redis")

	p.claim(p.tick(claim.Claim{Job: "plain", Digest: "d:plain", Run: "going", TTL: time.Minute, Attempts: 1}, p.now-100_000))
	wants(t, "seal while one runs", second(m.Seal(ctx, SealOptions{Drain: -1})), "run going")
	wants(t, "copy while one runs", second(m.Copy(ctx)), "--cancel-running")
	wants(t, "cancel", second(m.Seal(ctx, SealOptions{Drain: -1, CancelRunning: true})), "run going")
	if n := len(must(query.Cancels(ctx, p.led))); n != 2 { // and the tick's
		t.Errorf("%d wishes to end a run", n)
	}
	p.settle("plain", "going")
	must(m.Seal(ctx, SealOptions{}))
	_, astray := redistest.StartEmbedded(t)
	wrong := must(New(a, astray, Config{Namespace: ns, FromName: "old:6379", ToName: "astray:6379"}))
	for name, do := range map[string]func(context.Context) (Status, error){"abort": wrong.Abort, "copy": wrong.Copy, "open": wrong.Open,
		"seal": func(ctx context.Context) (Status, error) { return wrong.Seal(ctx, SealOptions{}) }} {
		wants(t, name+" to another Redis", second(do(ctx)), map[bool]string{true: "goes to new:6379", false: "knows nothing"}[name == "seal" || name == "abort"])
	}
	if d := dump(t, astray); len(d) > 0 {
		t.Errorf("another Redis was written to: %v", d)
	}
	wants(t, "open before copy", second(m.Open(ctx)), "move copy")
	must(m.Copy(ctx))
	a.HSet(ctx, fmt.Sprintf("{%s:%d}:pauses", ns, p.led.Partition("plain")), "plain", "1|1|0|kim|by hand")
	wants(t, "open with something else", second(m.Open(ctx)), "move copy")
	must(m.Copy(ctx))
	must(m.Open(ctx))
	wants(t, "abort after open", second(m.Abort(ctx)), "move it from there")
	wants(t, "seal after open", second(m.Seal(ctx, SealOptions{})), "moved")

	_, c := redistest.StartEmbedded(t)
	wants(t, "elsewhere after that", second(mover(t, a, c, Config{}).Seal(ctx, SealOptions{})), "moved")
	populate(t, c, 2)
	wants(t, "not empty", second(mover(t, b, c, Config{}).Seal(ctx, SealOptions{})), "of its own")
	wants(t, "not empty", second(mover(t, c, b, Config{}).Seal(ctx, SealOptions{})), "of its own")
}

func TestInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(ea, eb *redistest.Embedded, a, b *redis.Client, p *people)
		words string
	}{
		"clock ahead":  {func(_, eb *redistest.Embedded, _, _ *redis.Client, _ *people) { eb.StepClock(3 * time.Second) }, "the clock of new:6379 is "},
		"clock behind": {func(_, eb *redistest.Embedded, _, _ *redis.Client, _ *people) { eb.StepClock(-3 * time.Second) }, "the clock of old:6379 is "},
		"promotion": {func(_, _ *redistest.Embedded, a, _ *redis.Client, _ *people) {
			a.HSet(t.Context(), "{"+ns+"}:control", "promoting", "1|1|green||")
		}, "promotion"},
		"foreign entry": {func(_, _ *redistest.Embedded, a, _ *redis.Client, p *people) {
			a.HSet(t.Context(), "{shop:0}:jobs", "newer", "2|what")
		}, "entry of newer"},
		"foreign pending run": {func(_, _ *redistest.Embedded, a, _ *redis.Client, _ *people) {
			a.HSet(t.Context(), "{shop:0}:waiting", "run-x", "2|what")
		}, "run-x"},
		"foreign run": {func(_, _ *redistest.Embedded, a, _ *redis.Client, _ *people) {
			a.HSet(t.Context(), "{shop:0}:runs", "run-y", "2|what")
		}, "run-y"},
		"unknown key": {func(_, _ *redistest.Embedded, a, _ *redis.Client, _ *people) {
			a.Set(t.Context(), "{shop:0}:newer", "1", 0)
		}, "{shop:0}:newer"},
		"leftovers": {func(_, _ *redistest.Embedded, _, b *redis.Client, _ *people) {
			b.HSet(t.Context(), "{shop:0}:jobs", "a", "b")
		}, "without its control record"},
	} {
		t.Run(name, func(t *testing.T) {
			ea, a := redistest.StartEmbedded(t)
			eb, b := redistest.StartEmbedded(t)
			p := populate(t, a, 2)
			m := mover(t, a, b, Config{})
			c.do(ea, eb, a, b, p)
			before, there := dump(t, a), dump(t, b)
			if plan := must(m.Plan(t.Context())); !strings.Contains(strings.Join(plan.InTheWay, "\n"), c.words) {
				t.Errorf("plan: %q; want %q", plan.InTheWay, c.words)
			}
			wants(t, "seal", second(m.Seal(t.Context(), SealOptions{})), c.words)
			if d := append(differ(before, dump(t, a)), differ(there, dump(t, b))...); len(d) > 0 {
				t.Errorf("refused, and yet %v", d)
			}
		})
	}
}

// TestSealWaitsForReplicas: a namespace on a Cluster with a hanging replica is not sealed until the
// replica answers again.
func TestSealWaitsForReplicas(t *testing.T) {
	cluster := redistest.StartCluster(t)
	p := populate(t, cluster.Client(t), 6)
	m := mover(t, cluster.Client(t), redistest.Start(t).Client(t), Config{Partitions: 2})
	for i, replica := range cluster.Servers()[3:] {
		if err := replica.Pause(); err != nil {
			t.Fatal(err)
		}
		st, err := m.Seal(t.Context(), SealOptions{})
		if err := replica.Resume(); err != nil {
			t.Fatal(err)
		}
		if st.Next == NextSeal && errors.Is(err, locking.ErrUnreachable) && strings.Contains(err.Error(), "only 0 of 1 replicas") {
			before := content(dump(t, m.from))
			must(m.Seal(t.Context(), SealOptions{}))
			must(m.Copy(t.Context()))
			must(m.Open(t.Context()))
			if d := differ(before, content(dump(t, m.to))); len(d) > 0 {
				t.Errorf("%d differences:\n%s", len(d), strings.Join(d, "\n"))
			}
			moved(t, m, p)
			return
		}
		t.Logf("replica %d has none of the partitions: %v", i, err)
		if i == 2 {
			t.Fatalf("sealed without its replicas: %+v, %v", st, err)
		}
	}
}
