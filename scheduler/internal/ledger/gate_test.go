package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// closedGates are gates that are not open, and the texts of their errors.
var closedGates = []struct {
	stored string
	want   ledger.ClosedError
	next   string
}{
	{"1|0||sealed|m1|10.0.0.7:6379", ledger.ClosedError{"sealed", "m1", "10.0.0.7:6379"}, "move to 10.0.0.7:6379, or have moved; use that Redis, or look with `move status`"},
	{"1|0||filling|m1|10.0.0.7:6379", ledger.ClosedError{"filling", "m1", "10.0.0.7:6379"}, "moved here from 10.0.0.7:6379; wait for `move open`, or look with `move status`"},
	{"1|0||burnt|m1|10.0.0.7:6379", ledger.ClosedError{"burnt", "m1", "10.0.0.7:6379"}, "a move from 10.0.0.7:6379 to here was undone; use that Redis"},
	{"2|whatever", ledger.ClosedError{State: "foreign"}, "update this program"},
	{"1|0||open|cut", ledger.ClosedError{State: "foreign"}, "update this program"},
	{"1|0||shut||", ledger.ClosedError{State: "shut"}, "update this program"},
}

// deed is a call that a closed gate refuses and an open one does not.
type deed struct {
	name string
	do   func(ctx context.Context, r *rig) error
}

// defines is a deed that a definition is answered a word to; epoch is of a promotion, -1 for a
// node's own.
func defines(name, word string, epoch int64, d define.Definition) deed {
	return deed{name, func(ctx context.Context, r *rig) error {
		got, err := r.register(ctx, epoch, d)
		if err == nil && got[0].Status != word {
			return fmt.Errorf("answered %+v, want %s", got[0], word)
		}
		return err
	}}
}

// register is Define, or Switch for a promotion of this epoch; -1 for a node's own registration.
func (r *rig) register(ctx context.Context, epoch int64, d define.Definition) ([]define.Defined, error) {
	if epoch >= 0 {
		return define.Switch(ctx, r.led, r.now, epoch, []define.Definition{d})
	}
	return define.Define(ctx, r.led, r.now, []define.Definition{d})
}

func claims(name string, c claim.Claim) deed {
	return deed{name, func(ctx context.Context, r *rig) error {
		got, err := claim.Send(ctx, r.led, node, r.now, []claim.Claim{c})
		switch a := append(got, claim.Answer{})[0]; {
		case err != nil:
			return err
		case a.Verdict == claim.Closed:
			return fmt.Errorf("%w: %w: %s", ledger.ErrClosed, ledger.ErrRefused, a.Detail)
		case a.Verdict != claim.Granted && a.Verdict != claim.Opened && a.Verdict != claim.RecordedOnly:
			return fmt.Errorf("answered %+v", a)
		}
		return nil
	}}
}

// without is the error of a call alone.
func without[T any](_ T, err error) error { return err }

// hour is the first tick of the jobs that the deeds replace.
const hour = noon + 3_600_000

// deeds is one of everything that a gate guards, each on a job of its own; see furnish.
func deeds(e ledger.Event, shard, pending string) []deed {
	def := func(job, digest string, d define.Definition) define.Definition {
		d.Job, d.Digest, d.Revision, d.Text, d.WasDigest = job, digest, "9", []byte("{}"), "d-second"
		return d
	}
	back := operate.RewindRequest{Job: "back", Digest: "d-second", From: noon + 2000, To: noon + 1000}
	return []deed{
		claims("tick", tickClaim("idle", "x1", 2)), claims("pending", pendingClaim("pend", pending)), claims("shard", shardAgain("parts", shard)),
		claims("open", sharded(2, tickClaim("wide", "x2", 1))), claims("passes", passing("passes", "x3", 0, late(1, 3))),
		defines("create", "created", -1, def("new", "d-new", define.Definition{Cursor: hour})),
		defines("same", "same", -1, def("idle", "d-second", define.Definition{})),
		defines("replace", "replaced", -1, def("later", "d-new", define.Definition{WasCursor: hour, Cursor: hour + 1})),
		defines("replace, same schedule", "replaced", -1, def("stays", "d-new", define.Definition{Same: true})),
		defines("switch", "replaced", 0, def("turns", "d-new", define.Definition{Same: true, Generation: "neo"})),
		defines("switch creates", "created", 0, def("neo", "d-new", define.Definition{Cursor: hour, Generation: "neo"})),
		{"trigger", func(ctx context.Context, r *rig) error {
			return without(operate.Trigger(ctx, r.led, "idle", operate.TriggerRequest{Run: "t"}))
		}},
		{"trigger, unique", func(ctx context.Context, r *rig) error {
			return without(operate.Trigger(ctx, r.led, "idle", operate.TriggerRequest{Unique: "u"}))
		}},
		{"rerun", func(ctx context.Context, r *rig) error {
			return without(operate.Rerun(ctx, r.led, "repeat", "repeat-1"))
		}},
		{"rewind", func(ctx context.Context, r *rig) error { return without(operate.Rewind(ctx, r.led, r.now, back)) }},
		{"remove", func(ctx context.Context, r *rig) error { return operate.Remove(ctx, r.led, "gone") }},
		{"pause", func(ctx context.Context, r *rig) error {
			return operate.Pause(ctx, r.led, "idle", ledger.Pause{Author: "ann"})
		}},
		{"resume", func(ctx context.Context, r *rig) error { return operate.Resume(ctx, r.led, "paused") }},
		{"relay", func(ctx context.Context, r *rig) error { return without(follow.Relay(ctx, r.led, e, "down")) }},
		{"follow", func(ctx context.Context, r *rig) error { return follow.Follow(ctx, r.led, 0, "idle", "x") }},
		{"unfollow", func(ctx context.Context, r *rig) error { return follow.Unfollow(ctx, r.led, 0, "up", "down") }},
	}
}

// furnish makes the jobs of the deeds.
func (r *rig) furnish(t *testing.T) []deed {
	t.Helper()
	for _, job := range []string{"idle", "pend", "parts", "wide", "passes", "repeat", "back", "gone", "paused"} {
		r.create(t, job)
	}
	for _, job := range []string{"later", "stays", "turns"} {
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: hour}}))
	}
	r.chainOf(t, "up", "down")
	r.pass(t, time.Minute)
	for _, job := range []string{"idle", "repeat", "back", "gone", "up"} {
		r.runOne(t, job, 1)
	}
	r.want(t, claim.Opened, sharded(2, tickClaim("parts", "p", 1)))
	r.pause(t, "paused", ledger.Pause{Author: "ann"})
	must(operate.Trigger(t.Context(), r.led, "pend", operate.TriggerRequest{Run: "by hand"}))
	return deeds(r.events(t)[0], claim.ShardRun("p", 1), "by hand")
}

// refused does a deed behind a closed gate: it changes nothing, and the error has the reason and
// the next step.
func (d deed) refused(t *testing.T, r *rig, want ledger.ClosedError, next string) {
	t.Helper()
	r.unchanged(t, d.name+", refused,", func() {
		err := d.do(t.Context(), r)
		var closed *ledger.ClosedError
		if !errors.Is(err, ledger.ErrClosed) || !errors.Is(err, ledger.ErrRefused) || errors.As(err, &closed) && *closed != want || !strings.Contains(err.Error(), next) {
			t.Errorf("%s: %v, want %+v and %q", d.name, err, want, next)
		}
	})
}

// done does a deed behind an open gate: it changes something.
func (d deed) done(t *testing.T, r *rig) {
	t.Helper()
	before := dump(t, r.client)
	if err := d.do(t.Context(), r); err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	if len(differences(before, dump(t, r.client))) == 0 {
		t.Errorf("%s has changed nothing, so that it did not is no news behind a closed gate", d.name)
	}
}

// TestAClosedGateChangesNothing: behind a closed gate nothing is granted, taken in or changed, and
// every caller gets the error; behind an open one all calls go on.
func TestAClosedGateChangesNothing(t *testing.T) {
	for _, g := range closedGates {
		t.Run(g.stored, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				all := r.furnish(t)
				r.gate(t, g.stored)
				for _, d := range all {
					d.refused(t, r, g.want, g.next)
				}
				r.gate(t, "1|0||open|m1|10.0.0.7:6379")
				for _, d := range all {
					d.done(t, r)
				}
				r.sound(t)
			})
		})
	}
}

// heldDeeds is one of every guarded call about backfills, joins, chunks and promotions that nodes
// make by themselves.
func heldDeeds(r *rig, fed ledger.Backfill) []deed {
	chunks := define.Chunks(r.led, map[string]string{"idle": "d-second"})
	part := r.led.Partition("idle")
	return []deed{
		{"backfill", func(ctx context.Context, r *rig) error {
			b := ledger.Backfill{ID: "more", Job: "idle", From: r.now - 10_000, To: r.now, Parallel: 1, Total: 3, Author: "ann"}
			return without(backfill.Begin(ctx, r.led, b, "d-second"))
		}},
		{"feed", func(ctx context.Context, r *rig) error {
			_, _, err := backfill.Feed(ctx, r.led, fed, "d-second", 1, []int64{fed.From + 1000, fed.From + 2000})
			return err
		}},
		{"cancel a backfill", func(ctx context.Context, r *rig) error { return without(backfill.Cancel(ctx, r.led, "a", "ann", "")) }},
		{"give up", func(ctx context.Context, r *rig) error { return follow.GiveUpJoins(ctx, r.led, "j") }},
		{"announce", func(ctx context.Context, r *rig) error { return define.Announce(ctx, r.led, "blue", "1", chunks[part]) }},
		{"store", func(ctx context.Context, r *rig) error {
			return define.Store(ctx, r.led, part, []string{"d-more"}, func(string) ([]byte, error) { return []byte(`{"name":"idle"}`), nil })
		}},
		{"current", func(ctx context.Context, r *rig) error {
			return without(define.Current(ctx, r.led, chunks[part][0], "99"))
		}},
		{"promote", func(ctx context.Context, r *rig) error {
			return define.Raise(ctx, r.led, ledger.Promotion{Epoch: 7, Generation: "blue"})
		}},
	}
}

// TestAClosedGateTakesNothingFromNodes: behind it nodes neither go on with backfills and joins nor
// register jobs, and nothing is tidied away.
func TestAClosedGateTakesNothingFromNodes(t *testing.T) {
	for _, g := range closedGates {
		t.Run(g.stored, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				for _, job := range []string{"idle", "a", "b"} {
					r.create(t, job)
				}
				r.joins(t, "j", "succeeded", "a", "b")
				r.pass(t, time.Minute)
				must(follow.Relay(t.Context(), r.led, ledger.Event{Upstream: "a", Outcome: jobs.OutcomeSucceeded, Count: 1, At: r.now, Tick: noon + 1000, Until: noon + 1000}, "j"))
				r.hold(t, "old", "1", held(2, "first"))
				r.pass(t, r.led.Config.KeepFor+time.Minute)
				all := heldDeeds(r, r.filling(t, 4, 2))
				late := r.now + 2*define.AnnouncedFor.Milliseconds()
				r.gate(t, g.stored)
				for _, d := range all {
					d.refused(t, r, g.want, g.next)
				}
				r.unchanged(t, "tidy", func() { noError(t, define.Tidy(t.Context(), r.led, r.led.Partition("job-0"), late)) })
				r.gate(t, "1|0||open|m1|10.0.0.7:6379")
				for _, d := range all {
					d.done(t, r)
				}
				before := dump(t, r.client)
				noError(t, define.Tidy(t.Context(), r.led, r.led.Partition("job-0"), late))
				if len(differences(before, dump(t, r.client))) == 0 {
					t.Error("tidy has changed nothing, so that it did not is no news behind a closed gate")
				}
			})
		})
	}
}

// TestWhatRunsGoesOnBehindAClosedGate: a grant whose reply was lost is found, also in a batch with
// other claims, and runs in flight are renewed, settled, reaped and repeated, handed back, and
// cancelled.
func TestWhatRunsGoesOnBehindAClosedGate(t *testing.T) {
	for _, g := range closedGates {
		t.Run(g.stored, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) { goesOn(t, r, g.stored) })
		})
	}
}

func goesOn(t *testing.T, r *rig, stored string) {
	ctx := t.Context()
	for _, job := range []string{"ends", "crashes", "returns", "wanted", "waits", "beside", "parts", "due"} {
		r.create(t, job)
	}
	r.pass(t, time.Minute)
	granted := map[string]claim.Claim{
		"ends": tickClaim("ends", "ends-1", 1), "crashes": attempts(2, tickClaim("crashes", "crashes-1", 1)), "returns": tickClaim("returns", "returns-1", 1),
		"wanted": tickClaim("wanted", "wanted-1", 1), "beside": with(jobs.OverlapAllow, tickClaim("beside", "beside-1", 1)), "parts": pendingClaim("parts", claim.ShardRun("p", 0)),
	}
	r.want(t, claim.Opened, sharded(2, tickClaim("parts", "p", 1)))
	shard := granted["parts"]
	shard.Shard = true
	granted["parts"] = shard
	first := map[string]claim.Answer{}
	for job, c := range granted {
		first[job] = r.want(t, claim.Granted, c)
	}
	must(operate.Trigger(ctx, r.led, "waits", operate.TriggerRequest{Run: "waits-t"}))
	r.gate(t, stored)
	for job, c := range granted {
		got := must(claim.Send(ctx, r.led, node, r.now, []claim.Claim{tickClaim("due", "no", 1), c}))
		if got[0].Verdict != claim.Closed || got[1].Verdict != claim.Granted || got[1].Token != first[job].Token {
			t.Errorf("%s, asked again: %+v, first %+v", job, got, first[job])
		}
		if other := must(claim.Send(ctx, r.led, claim.Claimer{ID: "n2"}, r.now, []claim.Claim{c})); other[0].Verdict != claim.Closed {
			t.Errorf("%s, asked for by another node: %+v", job, other)
		}
	}
	r.renew(t, "ends", "ends-1", true)
	r.settle(t, settle.Settled, "ends", "ends-1", jobs.OutcomeSucceeded)
	r.settle(t, settle.Settled, "beside", "beside-1", jobs.OutcomeFailed)
	if got := must(settle.Unclaim(ctx, r.led, []settle.Return{{Job: "returns", Run: "returns-1"}})); got[0] != settle.Returned || r.open(t, "returns") == nil {
		t.Errorf("unclaim: %s", got[0])
	}
	if got := must(operate.Cancel(ctx, r.led, "wanted", "wanted-1", "ann", "")); got != operate.Flagged {
		t.Errorf("cancel what is going: %s", got)
	}
	for run, job := range map[string]string{"waits-t": "waits", "p": "parts", claim.ShardRun("p", 1): "parts"} { // they may go elsewhere
		if got, err := operate.Cancel(ctx, r.led, job, run, "ann", ""); !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("cancel %s: %s, %v", run, got, err)
		}
	}
	r.settle(t, settle.Settled, "wanted", "wanted-1", jobs.OutcomeCancelled)
	r.settle(t, settle.Settled, "parts", claim.ShardRun("p", 0), jobs.OutcomeSucceeded)
	if err := claim.Postpone(ctx, r.led, query.Late{Job: "due", Cursor: noon + 1000}, hour); err != nil || r.client.ZScore(ctx, r.led.Keys[0].Due, "due").Val() != float64(hour) {
		t.Errorf("postpone: %v", err)
	}
	r.pass(t, ttl+time.Millisecond)
	lease := ledger.Run{Job: "crashes", ID: "crashes-1"}
	if got := must(settle.Reap(ctx, r.led, r.now, r.epoch(), []ledger.Run{lease})); got[0] != settle.Reaped {
		t.Errorf("reap: %s", got[0])
	}
	if l := r.open(t, "crashes"); l == nil || l.Attempt != 2 || !l.Pending() {
		t.Errorf("after the reaping: %+v", l)
	}
	r.want(t, claim.Closed, pendingClaim("crashes", ledger.NextAttemptID("crashes-1")))
	r.sound(t)
	r.gate(t, "")
	r.want(t, claim.Granted, pendingClaim("crashes", ledger.NextAttemptID("crashes-1")))
	r.want(t, claim.Granted, pendingClaim("returns", r.open(t, "returns").ID))
	r.sound(t)
}

// TestReassertBehindAClosedGate: runs that a failover has lost are restored: they were granted
// before.
func TestReassertBehindAClosedGate(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.gate(t, "1|0||sealed|m1|x")
		r.gate(t, "")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		l := r.granted(t, tickClaim("a", "r1", 1))
		r.failover(t, before)
		r.gate(t, "1|0||sealed|m1|x")
		r.says(t, epoch.Restored, of(l))
		r.renews(t, locking.Renewed, l)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1)) // a repeated claim gets it, too
		r.want(t, claim.Closed, tickClaim("a", "r2", 2))
		r.ends(t, settle.Settled, l, jobs.OutcomeSucceeded)
		r.whole(t)
	})
}

// One job has another digest in each generation, and only the active one's may claim.
func TestGenerationsHaveTheirOwnDigests(t *testing.T) {
	job := jobs.Job{Name: "a", Schedule: "@every 1s", Shards: 1, TTL: ttl}
	defs := map[string]define.Definition{}
	for _, g := range []string{"", "blue", "neo"} {
		settings := job.Definition()
		settings.Generation = g
		defs[g] = define.Definition{Job: "a", Digest: settings.Digest(), Text: must(json.Marshal(settings)), Generation: g, Cursor: noon + 1000}
	}
	if defs[""].Digest == defs["neo"].Digest || defs["neo"].Digest == defs["blue"].Digest || defs["blue"].Digest == defs[""].Digest {
		t.Fatalf("two generations have one digest: %+v", defs)
	}
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.gate(t, "1|0|blue|open||")
		request := func(g, run string, second int64, want claim.Verdict) claim.Answer {
			t.Helper()
			c := tickClaim("a", run, second)
			c.Digest = defs[g].Digest
			return r.want(t, want, c)
		}
		r.defined(t, "created", -1, defs["blue"])
		r.pass(t, time.Minute)
		for _, g := range []string{"", "neo"} {
			if a := request(g, "r0", 1, claim.Superseded); a.Detail != defs["blue"].Digest {
				t.Errorf("%q is told of %s", g, a.Detail)
			}
			r.defined(t, "differs", -1, defs[g]) // it may only create
		}
		request("blue", "r1", 1, claim.Granted)
		r.gate(t, "1|1|neo|open||") // as a promotion does, job by job
		next := defs["neo"]
		next.WasDigest, next.Same, next.Old = defs["blue"].Digest, true, must(job.ParsedSchedule()).String()
		r.defined(t, "replaced", 1, next)
		request("blue", "r1", 1, claim.Granted) // its run goes on, and its reply may have been lost
		request("blue", "r2", 2, claim.Superseded)
		request("neo", "r3", 2, claim.JobBusy)
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		request("neo", "r3", 2, claim.Granted)
		r.settle(t, settle.Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.tale(t, "a", "superseded 2-0 x0 definition replaced "+next.Old, "succeeded 1", "succeeded 2")
		r.sound(t)
	})
}
