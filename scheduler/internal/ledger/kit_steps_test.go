package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

var oneConfig = ledger.Config{Partitions: 1, Keep: 16}

const ttl = 5 * time.Second

var node = claim.Claimer{ID: "n1", Name: "alpha"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// create makes a job whose first tick is at noon and a second.
func (r *rig) create(t *testing.T, job string) {
	t.Helper()
	got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000}}))
	if got[0].Status != "created" {
		t.Fatalf("%s: %s", job, got[0].Status)
	}
}

// tickClaim is the claim of a job's tick so many seconds after noon.
func tickClaim(job, run string, second int64) claim.Claim {
	at := noon + second*1000
	return claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: at, Tick: at, Next: at + 1000}
}

// seconds is a pass of the ticks from one second after noon to another.
func seconds(outcome jobs.Outcome, reason string, first, last int64) ledger.SkippedRange {
	return ledger.SkippedRange{Outcome: outcome, Reason: reason, First: noon + first*1000, Last: noon + last*1000, Count: last - first + 1, Next: noon + (last+1)*1000}
}

func pendingClaim(job, run string) claim.Claim {
	return claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, Pending: true}
}

func (r *rig) claim(t *testing.T, c claim.Claim) claim.Answer {
	t.Helper()
	answers, err := claim.Send(t.Context(), r.led, node, r.now, []claim.Claim{c})
	if err != nil {
		t.Fatalf("claim %+v: %v", c, err)
	}
	return answers[0]
}

// want claims and compares the verdict.
func (r *rig) want(t *testing.T, v claim.Verdict, c claim.Claim) claim.Answer {
	t.Helper()
	a := r.claim(t, c)
	if a.Verdict != v {
		t.Fatalf("claim %+v: %+v, want %s", c, a, v)
	}
	return a
}

func (r *rig) settle(t *testing.T, want ledger.Status, job, run string, outcome jobs.Outcome) {
	t.Helper()
	got := must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: job, Run: run, Outcome: outcome, Started: r.now, Ended: r.now, Tries: 1}}))
	if got[0] != want {
		t.Fatalf("settle of %s: %s, want %s", run, got[0], want)
	}
}

func (r *rig) rows(t *testing.T, job string) []ledger.Row {
	t.Helper()
	rows, _, err := query.History(t.Context(), r.led, []string{job})
	if err != nil {
		t.Fatal(err)
	}
	return rows[job]
}

func (r *rig) entry(t *testing.T, job string) ledger.Entry {
	t.Helper()
	return must(query.Job(t.Context(), r.led, job)).Entry
}

// tale compares a job's history, by outcome and second after noon: "succeeded 1", "failed 1 #2" for
// another attempt, "abandoned by hand" for an operator's run, "missed 2-11 x10 late"; for shards
// "0/3 failed 1", "0/3 alone failed 1" for a shard without a tick, and "all 3 failed 1" for the
// tick.
func (r *rig) tale(t *testing.T, job string, want ...string) {
	t.Helper()
	var got []string
	for _, row := range r.rows(t, job) {
		s := fmt.Sprintf("%s %d", row.Outcome, (row.Tick-noon)/1000)
		switch {
		case row.Ranged:
			s = strings.TrimSpace(fmt.Sprintf("%s-%d x%d %s %s", s, max(0, row.Until-noon)/1000, row.Count, row.Reason, row.Note))
		case row.Request != "":
			s = row.Outcome.String() + " by hand"
		}
		switch {
		case row.IsTick:
			s = fmt.Sprintf("all %d %s", row.Shards, s)
		case row.Shards > 1 && row.TickID == "":
			s = fmt.Sprintf("%d/%d alone %s", row.Shard, row.Shards, s)
		case row.Shards > 1:
			s = fmt.Sprintf("%d/%d %s", row.Shard, row.Shards, s)
		}
		if !row.Ranged && row.Attempt > 1 {
			s += fmt.Sprint(" #", row.Attempt)
		}
		if row.IsTick && row.Reason != "" {
			s += ": " + row.Reason
		}
		got = append(got, s)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history of %s is\n%q, want\n%q", job, got, want)
	}
}

// sharded is a claim of a job with so many shards.
func sharded(n int, c claim.Claim, params ...string) claim.Claim {
	c.Shards, c.Params = n, params
	return c
}

// shardClaim is the claim of a shard of an open tick.
func shardClaim(job, tick string, shard int) claim.Claim {
	return shardAgain(job, claim.ShardRun(tick, shard))
}

// shardAgain is the claim of a later attempt of one.
func shardAgain(job, run string) claim.Claim {
	c := pendingClaim(job, run)
	c.Shard = true
	return c
}

// ended claims and settles shards of an open tick, from the first on.
func (r *rig) ended(t *testing.T, job, tick string, outcomes ...jobs.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		r.complete(t, o, shardClaim(job, tick, i))
	}
}

// left is the open tick's record; nil when there is none.
func (r *rig) left(t *testing.T, job, tick string) *ledger.Run {
	t.Helper()
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.ID == tick && l.IsOpenTick {
			return &l
		}
	}
	return nil
}

// unchanged does something that must leave every key as it is.
func (r *rig) unchanged(t *testing.T, what string, do func()) {
	t.Helper()
	before := dump(t, r.client)
	do()
	if wrong := differences(before, dump(t, r.client)); len(wrong) > 0 {
		t.Errorf("%s changed %s", what, strings.Join(wrong, "\n"))
	}
}

// attempts is a claim of a tick that may be granted so often before a crash ends it.
func attempts(most int, c claim.Claim) claim.Claim {
	c.Attempts = most
	return c
}

// reap lets a lease lapse and reaps it.
func (r *rig) reap(t *testing.T, job, run string) {
	t.Helper()
	r.pass(t, ttl+time.Millisecond)
	seen := ledger.Run{Job: job, ID: run}
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.ID == run {
			seen = l
		}
	}
	if got := must(settle.Reap(t.Context(), r.led, r.now, r.epoch(), []ledger.Run{seen})); got[0] != settle.Reaped {
		t.Fatalf("reap of %s: %s", run, got[0])
	}
}

// open is the one run in flight of a job, leased or pending; nil when there is none.
func (r *rig) open(t *testing.T, job string) *ledger.Run {
	t.Helper()
	var found []ledger.Run
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.Job == job {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	t.Fatalf("in flight: %+v", found)
	return nil
}

// with is a claim under another overlap policy.
func with(o jobs.Overlap, c claim.Claim) claim.Claim {
	c.Overlap = o
	return c
}

// passing is a claim that passes ticks before its own tick; with 0 it has none.
func passing(job, run string, second int64, passes ...ledger.SkippedRange) claim.Claim {
	c := claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: passes[0].First, Skipped: passes, Next: passes[len(passes)-1].Next}
	if second != 0 {
		c.Tick, c.Next = noon+second*1000, noon+second*1000+1000
	}
	return c
}

func overlapped(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomeSkipped, ledger.ReasonOverlap, first, last)
}

func late(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomeMissed, ledger.ReasonLate, first, last)
}

func paused(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomePaused, ledger.ReasonPaused, first, last)
}

func (r *rig) pause(t *testing.T, job string, p ledger.Pause) {
	t.Helper()
	if err := operate.Pause(t.Context(), r.led, job, p); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) resume(t *testing.T, job string) {
	t.Helper()
	if err := operate.Resume(t.Context(), r.led, job); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) pausedFor(t *testing.T, job string, want ledger.Window) {
	t.Helper()
	if e := r.entry(t, job); e.Pause != want {
		t.Fatalf("paused for %+v, want %+v", e.Pause, want)
	}
}

// complete claims, is granted, and settles.
func (r *rig) complete(t *testing.T, outcome jobs.Outcome, c claim.Claim) claim.Answer {
	t.Helper()
	a := r.want(t, claim.Granted, c)
	r.settle(t, settle.Settled, c.Job, c.Run, outcome)
	return a
}

// runOne claims and settles the tick so many seconds after noon.
func (r *rig) runOne(t *testing.T, job string, second int64) {
	t.Helper()
	r.complete(t, jobs.OutcomeSucceeded, tickClaim(job, fmt.Sprintf("%s-%d", job, second), second))
}

// chainOf makes jobs, each of which follows the one before it; the first has the schedule.
func (r *rig) chainOf(t *testing.T, names ...string) {
	t.Helper()
	r.create(t, names[0])
	for i, name := range names[1:] {
		r.follower(t, names[i], name)
	}
}

// follower makes a job that follows another one.
func (r *rig) follower(t *testing.T, upstream, name string) {
	t.Helper()
	must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: name, Digest: "d-after-" + name, Text: fmt.Appendf(nil, `{"name":%q,"after":%q}`, name, upstream)}}))
	if err := follow.Follow(t.Context(), r.led, 0, upstream, name); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) events(t *testing.T) []ledger.Event {
	t.Helper()
	return must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Events
}

// relayAll delivers all events to the followers, several times each, until there are no more.
func (r *rig) relayAll(t *testing.T) {
	t.Helper()
	for {
		events := r.events(t)
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			for _, job := range slices.Concat(e.Followers, e.Followers) {
				if got := must(follow.Relay(t.Context(), r.led, e, job)); got != follow.Done {
					t.Fatalf("%s is told of %+v: %s", job, e, got)
				}
			}
			if err := follow.Relayed(t.Context(), r.led, e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func after(o jobs.Overlap, job, run string) claim.Claim {
	return claim.Claim{Job: job, Digest: "d-after-" + job, Run: run, TTL: ttl, Pending: true, Overlap: o}
}

// gate stores a gate of the only partition.
func (r *rig) gate(t *testing.T, stored string) {
	t.Helper()
	if err := setGate(t.Context(), r.client, r.led.Keys[0].Gate, stored); err != nil {
		t.Fatal(err)
	}
}

// members are so many members of a sorted set, unrelated to the ledger, with a time far ahead.
func members(n int) []redis.Z {
	all := make([]redis.Z, n)
	for i := range all {
		all[i] = redis.Z{Score: float64(2 * noon), Member: fmt.Sprint("other-", i)}
	}
	return all
}
