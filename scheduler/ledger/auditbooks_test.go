package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// keeper does to a ledger what a node does, for one job with a real definition.
type keeper struct {
	*rig
	t      *testing.T
	def    jobs.Definition
	sched  *jobs.Schedule
	cursor int64
}

func keep(t *testing.T, r *rig, name, schedule string) *keeper {
	k := &keeper{rig: r, t: t}
	k.want("created", k.define(jobs.Job{Name: name, Schedule: schedule, OnCrash: jobs.OnCrashRerun, RerunMax: 3}, Definition{}))
	return k
}

// define registers a definition, in the place of the one that was says.
func (k *keeper) define(j jobs.Job, was Definition) string {
	k.def = j.Definition()
	k.sched = must(jobs.ParseScheduleFor(j.Name, j.Schedule, j.TimeZone))
	was.Job, was.Digest, was.Text, was.Cursor = j.Name, k.def.Digest(), must(json.Marshal(k.def)), tickAfter(k.sched, k.now)
	got := must(k.led.Define(k.t.Context(), k.now, []Definition{was}))[0]
	k.cursor = got.Cursor
	return got.Word
}

// redefine replaces the definition, as a registrar does.
func (k *keeper) redefine(schedule string) {
	was := Definition{WasDigest: k.def.Digest(), WasCursor: k.cursor, Old: k.sched.String()}
	if k.cursor <= k.now {
		was.Count, was.Until = count(k.sched, k.cursor, k.now)
	}
	k.want("replaced", k.define(jobs.Job{Name: k.def.Name, Schedule: schedule}, was))
}

func (k *keeper) want(want, got string) {
	k.t.Helper()
	if got != want {
		k.t.Fatalf("got %s, want %s", got, want)
	}
}

// claim asks for a step: n ticks that do not run for a reason, and, with a run, the one behind them.
func (k *keeper) claim(v Verdict, run string, n int64, reason string) {
	k.t.Helper()
	c := Claim{Job: k.def.Name, Digest: k.def.Digest(), Run: run, TTL: ttl, Overlap: k.def.Overlap, Attempts: 4, From: k.cursor, Next: k.cursor}
	if n > 0 {
		p := Pass{Outcome: outcomeOf[reason], Reason: reason, First: k.cursor, Count: n, Next: k.cursor}
		for range n {
			p.Last, p.Next = p.Next, tickAfter(k.sched, p.Next)
		}
		c.Passes, c.Next = []Pass{p}, p.Next
	}
	if run != "" {
		c.Tick, c.Next = c.Next, tickAfter(k.sched, c.Next)
	}
	k.want(v.String(), k.ask(c).Verdict.String())
	k.cursor = c.Next
}

func (k *keeper) ask(c Claim) Answer {
	return must(k.led.Claim(k.t.Context(), Claimer{"n1", "alpha"}, k.now, []Claim{c}))[0]
}

func (k *keeper) pending(run string) {
	k.t.Helper()
	k.want("granted", k.ask(Claim{Job: k.def.Name, Digest: k.def.Digest(), Run: run, TTL: ttl, Attempts: 4, Pending: true}).Verdict.String())
}

func (k *keeper) end(run string, outcome jobs.Outcome) {
	k.t.Helper()
	got := must(k.led.Settle(k.t.Context(), []Report{{Job: k.def.Name, Run: run, Outcome: outcome, Started: k.now, Ended: k.now, Tries: 1}}))
	k.want(string(Settled), string(got[0]))
}

func (k *keeper) run(run string) {
	k.t.Helper()
	k.claim(Granted, run, 0, "")
	k.end(run, jobs.OutcomeSucceeded)
}

func (k *keeper) wait(seconds int) { k.pass(k.t, time.Duration(seconds)*time.Second) }

// crash lets the lease of a run lapse, and returns the next attempt's id.
func (k *keeper) crash(run string) string {
	k.t.Helper()
	k.wait(6)
	k.want(string(Reaped), string(must(k.led.Reap(k.t.Context(), k.now, k.identity, []Lease{{Job: k.def.Name, Run: run}}))[0]))
	return Successor(run)
}

// everything makes the history of a job in which all happened that can, and has a run in flight.
func everything(k *keeper) {
	t, ctx := k.t, k.t.Context()
	k.wait(5)
	k.run("r1")
	k.claim(Granted, "r5", 3, ReasonLate) // ticks 2 to 4
	k.end("r5", jobs.OutcomeFailed)
	if _, err := k.led.Trigger(ctx, k.def.Name, Trigger{Run: "by-hand"}); err != nil {
		t.Fatal(err)
	}
	k.pending("by-hand")
	k.wait(2)
	k.claim(Skipped, "r6", 0, "")
	k.end("by-hand", jobs.OutcomeSucceeded)
	k.claim(Granted, "r7", 0, "")
	k.want(string(Returned), string(must(k.led.Unclaim(ctx, []Return{{Job: k.def.Name, Run: "r7"}}))[0]))
	k.pending(Successor("r7"))
	second := k.crash(Successor("r7"))
	k.pending(second)
	third := k.crash(second)
	k.pending(third)
	k.end(third, jobs.OutcomeSucceeded)
	if err := k.led.Pause(ctx, k.def.Name, Pause{Author: "a", Reason: "b"}); err != nil {
		t.Fatal(err)
	}
	k.wait(3)
	k.claim(Passed, "", 10, ReasonPaused)
	if err := k.led.Resume(ctx, k.def.Name); err != nil {
		t.Fatal(err)
	}
	k.claim(Passed, "", 4, ReasonPaused)
	k.wait(5)
	k.redefine("@every 1h") // two ticks are left behind
	k.redefine("@every 2s")
	k.wait(7)
	first := k.cursor
	k.run("s1")
	k.run("s2")
	k.want(string(Rewound), string(must(k.led.Rewind(ctx, k.now, Rewind{Job: k.def.Name, Digest: k.def.Digest(), From: k.cursor, To: first}))))
	k.cursor = first
	k.run("s3")
	fresh := must(k.led.Rerun(ctx, k.def.Name, "r5"))
	k.pending(fresh)
	k.end(fresh, jobs.OutcomeTimedOut)
	k.claim(Granted, "last-"+k.def.Name, 0, "")
}

// verified makes that history twice, as jobs a and b, and checks that nothing is wrong with it.
func verified(t *testing.T) *keeper {
	useScripts(t, steered...)
	r := embeddedRig(t, Config{Partitions: 1, Keep: 100})
	k := keep(t, r, "a", "@every 1s")
	everything(k)
	everything(keep(t, r, "b", "@every 1s"))
	x := must(r.led.Examine(t.Context(), Scope{}))
	if len(x.Violations)+len(x.LeftAlone)+len(x.Unverified) > 0 || x.Jobs != 2 || x.Rows != int64(2*len(r.rows(t, "a"))) || x.Ticks != 2*31 {
		t.Fatalf("%d jobs, %d rows, %d ticks, %v, %v\n%s", x.Jobs, x.Rows, x.Ticks, x.LeftAlone, x.Unverified, show(x.Violations))
	}
	return k
}

// rewrite changes the records of job a's history.
func (k *keeper) rewrite(change func(rows []string) []string) {
	key := k.led.keys[0].history + "a"
	rows := must(k.client.LRange(k.t.Context(), key, 0, -1).Result())
	k.client.Del(k.t.Context(), key)
	for _, record := range change(slices.Clone(rows)) {
		k.client.RPush(k.t.Context(), key, record)
	}
}

// row is the place of the one record that holds a text.
func place(t *testing.T, rows []string, text string) int {
	t.Helper()
	i := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, text) })
	if i < 0 {
		t.Fatalf("no row with %s", text)
	}
	return i
}

// field changes one field of a record, counted from 0.
func field(record string, n int, value any) string {
	f := strings.Split(record, "|")
	f[n] = fmt.Sprint(value)
	return strings.Join(f, "|")
}
