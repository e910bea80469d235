package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Words for the tests below: a rig with one partition, jobs that tick each second.

var oneConfig = Config{Partitions: 1, Keep: 16}

const ttl = 5 * time.Second

var node = Claimer{ID: "n1", Name: "alpha"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// create makes a job whose first tick is at noon and a second.
func (r *rig) create(t *testing.T, job string) {
	t.Helper()
	got := must(r.led.Define(t.Context(), r.now, []Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000}}))
	if got[0].Word != "created" {
		t.Fatalf("%s: %s", job, got[0].Word)
	}
}

// tickClaim is the claim of a job's tick so many seconds after noon.
func tickClaim(job, run string, second int64) Claim {
	at := noon + second*1000
	return Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: at, Tick: at, Next: at + 1000}
}

// lateClaim passes so many ticks as missed before it runs one.
func lateClaim(job, run string, from, missed int64) Claim {
	c := tickClaim(job, run, from+missed)
	c.From, c.Trigger = noon+from*1000, jobs.TriggerCatchUp
	c.Passes = []Pass{seconds(jobs.OutcomeMissed, ReasonLate, from, from+missed-1)}
	return c
}

// seconds is a pass of the ticks from one second after noon to another.
func seconds(outcome jobs.Outcome, reason string, first, last int64) Pass {
	return Pass{Outcome: outcome, Reason: reason, First: noon + first*1000, Last: noon + last*1000, Count: last - first + 1, Next: noon + (last+1)*1000}
}

func pendingClaim(job, run string) Claim {
	return Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, Pending: true}
}

func (r *rig) claim(t *testing.T, c Claim) Answer {
	t.Helper()
	return must(r.led.Claim(t.Context(), node, r.now, []Claim{c}))[0]
}

// want claims and compares the verdict.
func (r *rig) want(t *testing.T, v Verdict, c Claim) Answer {
	t.Helper()
	a := r.claim(t, c)
	if a.Verdict != v {
		t.Fatalf("claim %+v: %+v, want %s", c, a, v)
	}
	return a
}

func (r *rig) settle(t *testing.T, want Word, job, run string, outcome jobs.Outcome) {
	t.Helper()
	got := must(r.led.Settle(t.Context(), []Report{{Job: job, Run: run, Outcome: outcome, Started: r.now, Ended: r.now, Tries: 1}}))
	if got[0] != want {
		t.Fatalf("settle of %s: %s, want %s", run, got[0], want)
	}
}

func (r *rig) rows(t *testing.T, job string) []Row {
	t.Helper()
	rows, _, err := r.led.History(t.Context(), []string{job})
	if err != nil {
		t.Fatal(err)
	}
	return rows[job]
}

func (r *rig) entry(t *testing.T, job string) Entry {
	t.Helper()
	return must(r.led.Job(t.Context(), job)).Entry
}

// tale compares a job's history, told by outcome and second after noon: "succeeded 1", "failed 1 #2" for
// another attempt, "abandoned by hand" for a run that a person asked for, "missed 2-11 x10 late".
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
		if !row.Ranged && row.Attempt > 1 {
			s += fmt.Sprint(" #", row.Attempt)
		}
		got = append(got, s)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history of %s is\n%q, want\n%q", job, got, want)
	}
}
