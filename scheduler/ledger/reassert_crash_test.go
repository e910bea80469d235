package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// crashed is a tick whose first run crashed and was repeated, and what the server held on the way there: before the
// first grant, after it, after the reaping, after the second grant.
type crashed struct {
	first, second Lease
	story         []backup
}

func (r *rig) crash(t *testing.T) crashed {
	t.Helper()
	r.create(t, "a")
	r.pass(t, 1500*time.Millisecond)
	c := crashed{story: []backup{r.backup(t)}}
	c.first = r.granted(t, attempts(3, tickClaim("a", "r1", 1)))
	c.story = append(c.story, r.backup(t))
	r.lapse(t, c.first)
	c.story = append(c.story, r.backup(t))
	c.second = r.grantedTo(t, Claimer{"n2", "beta"}, attempts(3, pendingClaim("a", Successor("r1"))))
	c.story = append(c.story, r.backup(t))
	return c
}

// TestReassertASecondAttempt: whatever is lost of a crash and of the attempt that followed, that attempt is restored,
// alone, and no other follows when the first is reaped again.
func TestReassertASecondAttempt(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		c := r.crash(t)
		for i, before := range c.story[1:] {
			for _, late := range []bool{false, true} { // whether the second attempt ends before the first is reaped again
				t.Logf("as of moment %d, ends late: %v", i+1, late)
				r.failover(t, before)
				r.says(t, map[bool]Word{true: Known, false: Restored}[i == 2], of(c.second))
				if e := r.entry(t, "a"); e.Open != c.second.Run || e.Token != c.second.Token || e.Cursor != noon+2000 {
					t.Fatalf("the entry is %+v", e)
				}
				r.proven(t)
				if late {
					r.ends(t, Settled, c.second, jobs.OutcomeSucceeded)
				}
				if i == 0 {
					r.lapse(t, c.first)
				}
				if !late {
					if e := r.entry(t, "a"); e.Open != c.second.Run {
						t.Errorf("the job is held by %q", e.Open)
					}
					r.whole(t)
					r.ends(t, Settled, c.second, jobs.OutcomeSucceeded)
				}
				want := []string{"abandoned 1", "succeeded 1 #2"}
				if r.proven(t); i == 0 && late {
					want = []string{"succeeded 1 #2", "abandoned 1"}
				}
				if r.tale(t, "a", want...); r.open(t, "a") != nil || r.entry(t, "a").Open != "" {
					t.Errorf("in flight: %+v", r.open(t, "a"))
				}
				r.granted(t, tickClaim("a", "r2", 2))
			}
		}
	})
}

// TestReassertAfterALoss: the first attempt's own node had told its end, and tells it again, before or after the second
// is restored.
func TestReassertAfterALoss(t *testing.T) {
	for _, order := range [][]string{{"first", "second", "end"}, {"second", "first", "end"}, {"second", "end", "first"}} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				story := []backup{r.backup(t)}
				first := r.granted(t, attempts(3, tickClaim("a", "r1", 1)))
				story = append(story, r.backup(t))
				lost := []Report{{Job: "a", Run: "r1", Token: first.Token, Outcome: jobs.OutcomeLost, Started: r.now, Ended: r.now, Rerun: true}}
				must(r.led.Settle(t.Context(), lost))
				second := r.granted(t, attempts(3, pendingClaim("a", Successor("r1"))))
				for i, before := range story {
					r.failover(t, before)
					for _, what := range order {
						switch what {
						case "first":
							r.says(t, map[bool]Word{true: Restored, false: Known}[i == 0 && order[0] == what], of(first))
							if got := must(r.led.Settle(t.Context(), lost)); got[0] != Settled {
								t.Fatalf("settle: %s", got[0])
							}
						case "second":
							if i == 0 && order[0] == "second" {
								r.says(t, Behind, of(second)) // the other node's run may be the step, and is
								r.says(t, Restored, of(first))
							}
							r.says(t, Restored, of(second))
						case "end":
							r.ends(t, Settled, second, jobs.OutcomeSucceeded)
						}
						r.proven(t)
					}
					want := []string{"lost 1", "succeeded 1 #2"}
					if order[2] == "first" {
						want = []string{"succeeded 1 #2", "lost 1"}
					}
					if r.tale(t, "a", want...); r.open(t, "a") != nil || r.entry(t, "a").Open != "" {
						t.Errorf("in flight: %+v", r.open(t, "a"))
					}
				}
			})
		})
	}
}

// TestReassertTheOnlyAttempt: all of the first attempt is lost, and its node with it. The second becomes the step of the
// cursor when nobody else has anything to say, with the ticks before it given up; the tick is not granted anew.
func TestReassertTheOnlyAttempt(t *testing.T) {
	next := func(a *Assertion) { a.Next = noon + 2000 }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		nothing := r.backup(t)
		c := r.crash(t)
		r.failover(t, c.story[0])
		r.says(t, Behind, of(c.second))
		r.says(t, Behind, of(c.second, next))
		r.says(t, Restored, of(c.second, next, gap(1, 0)))
		if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Open != c.second.Run {
			t.Errorf("the entry is %+v", e)
		}
		r.want(t, Moved, tickClaim("a", "r9", 1))
		r.ends(t, Settled, c.second, jobs.OutcomeSucceeded)
		r.says(t, Lost, of(c.first))
		r.proven(t)
		r.tale(t, "a", "succeeded 1 #2")

		// The new server has given the tick to somebody else: then it is that one's.
		r.failover(t, c.story[0])
		r.granted(t, tickClaim("a", "r9", 1))
		r.says(t, Lost, of(c.second, next, gap(1, 0)))
		r.ends(t, NoSuchRun, c.second, jobs.OutcomeFailed)
		r.whole(t)

		// The job is not even known, and is defined anew when the tick is past: this is no step of it.
		r.failover(t, nothing)
		r.says(t, NoSuchJob, of(c.second))
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), Cursor: noon + 60_000}}))
		r.says(t, Restored, of(c.second))
		r.ends(t, Settled, c.second, jobs.OutcomeSucceeded)
		r.proven(t)
	})
}

// TestReassertARerunByHand: an operator's attempt whose request and grant are lost follows upon the row of the first.
func TestReassertARerunByHand(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		first := r.granted(t, tickClaim("a", "r1", 1))
		granted := r.backup(t)
		r.ends(t, Settled, first, jobs.OutcomeFailed)
		ended := r.backup(t)
		second := r.granted(t, pendingClaim("a", must(r.led.Rerun(t.Context(), "a", "r1"))))
		for i, before := range []backup{ended, granted} {
			r.failover(t, before)
			r.says(t, Restored, of(second))
			if i == 1 {
				r.says(t, Known, of(first))
				r.ends(t, Settled, first, jobs.OutcomeFailed)
			}
			if e := r.entry(t, "a"); e.Open != second.Run {
				t.Errorf("the job is held by %q", e.Open)
			}
			r.whole(t)
			r.ends(t, Settled, second, jobs.OutcomeSucceeded)
			r.tale(t, "a", "failed 1", "succeeded 1 #2")
			r.whole(t)
		}
	})
}

// TestReassertASecondAttemptHandedBack: the attempt that followed a crash has changed its id.
func TestReassertASecondAttemptHandedBack(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		c := r.crash(t)
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: c.second.Run, Token: c.second.Token}}))
		third := r.granted(t, attempts(3, pendingClaim("a", Successor(c.second.Run))))
		for i, before := range c.story[1:] {
			t.Logf("as of moment %d", i+1)
			r.failover(t, before)
			r.says(t, Restored, of(third))
			if e := r.entry(t, "a"); e.Open != third.Run {
				t.Errorf("the job is held by %q", e.Open)
			}
			r.ends(t, Settled, third, jobs.OutcomeSucceeded)
			if r.proven(t); i > 0 {
				r.tale(t, "a", "abandoned 1", "succeeded 1 #2")
				if l := r.open(t, "a"); l != nil {
					t.Errorf("in flight: %+v", l)
				}
			}
		}
	})
}

// TestAuditAfterAFailover: what the history cannot tell of attempts that were told again is held against nobody; all else is,
// and all of later ticks.
func TestAuditAfterAFailover(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		c := r.crash(t)
		r.failover(t, c.story[0])
		r.says(t, Restored, of(c.first))
		if e := r.entry(t, "a"); e.Retold != 0 {
			t.Errorf("nothing came before the run, and the entry is %+v", e)
		}
		r.failover(t, c.story[1])
		r.says(t, Restored, of(c.second))
		r.ends(t, Settled, c.second, jobs.OutcomeSucceeded)
		r.lapse(t, c.first)
		r.whole(t)
		e, rows := r.entry(t, "a"), r.rows(t, "a")
		if e.Retold != c.second.Tick || len(e.Counts) != 2 || len(rows) != 2 {
			t.Errorf("the entry is %+v, the rows %+v", e, rows)
		}
		finds := func(promise string) {
			t.Helper()
			if wrong := Audit(e, jobs.Definition{}, rows, nil); len(wrong) != 1 || wrong[0].Promise != promise {
				t.Errorf("found %s, want one break of %s", show(wrong), promise)
			}
		}
		e.Retold = c.second.Tick - 1
		finds(P1)
		e.Retold = c.second.Tick
		rows[0].Token, rows[1].Token = rows[1].Token, rows[0].Token
		finds(P3)
	})
}
