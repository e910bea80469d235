package schedtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var spoilings = []spoiling{
	// The writes.
	{"a start before its tick", "", "EARLY", respell(ran, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.At = w.Tick.Add(-time.Millisecond) })},
	{"a start much later", "plain", "LATE", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		w.At = w.At.Add(1900 * time.Millisecond)
		if end := s.line(r.Run, audit.End); end != nil {
			end.At = end.At.Add(1900 * time.Millisecond)
		}
	})},
	{"a second run of a tick", "", "DOUBLE", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.add(*w, func(x *audit.Write) { x.Run, x.Token, x.At = "another", x.Token+1_000_000_000, x.At.Add(second/4) })
	})},
	{"a try begun twice", "", "DOUBLE", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) { s.add(*w, func(*audit.Write) {}) })},
	{"a try too many", "", "UNWANTED", respell(ran, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.Try = 4 })},
	{"another try after a success", "", "UNWANTED", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.add(*w, func(x *audit.Write) { x.Try = 9 })
	})},
	{"a tick that there is not", "", "PHANTOM", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) { w.Tick = w.Tick.Add(second / 3) })},
	{"an end without a start", "", "PHANTOM", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) { w.Phase = audit.End })},
	{"a job that nobody configured", "", "PHANTOM", respell(ran, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.Job = "nobody" })},
	{"a run by hand that nobody asked for", "", "PHANTOM", func(s *spoilt) bool {
		asked := len(s.job.Asked) > 0
		s.job.Asked = nil
		return asked
	}},
	{"a run of a backfill that nobody asked for", "plain", "PHANTOM", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.job.Asked, s.job.Backfills = nil, []audit.Span{{From: w.Tick.Add(-time.Hour), Until: w.Tick}}
		s.add(*w, func(x *audit.Write) { x.Run, x.Token, x.Trigger = "another", x.Token+1_000_000_000, "backfill" })
	})},
	{"a token that falls", "", "TOKEN", respell(ran, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.Token = 1 })},
	{"a guard that refuses what is not stale", "", "TOKEN", respell(ran, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.Refused = true })},
	{"a run that goes on during the next", "plain", "OVERLAP", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.line(r.Run, audit.End).No = len(s.Writes) + 1000
	})},
	{"a grant beside one who works on", "", "TOLD", func(s *spoilt) bool {
		after := func(r *ledger.Row) int {
			return slices.IndexFunc(s.Grants, func(g audit.Grant) bool { return g.Job == r.Job && g.Tick > r.Tick })
		}
		r := s.row(func(r *ledger.Row) bool { return ran(r) && after(r) >= 0 && s.line(r.Run, audit.Start) != nil })
		if r == nil {
			return false
		}
		s.Grants[after(r)].Working = []string{r.Run}
		return true
	}},
	{"a grant with a smaller token", "", "TOKEN", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.Grants[slices.IndexFunc(s.Grants, func(g audit.Grant) bool { return g.Run == r.Run })].Token = 7
	})},
	{"shards that do not agree how many they are", "", "MIXED", respell(func(r *ledger.Row) bool { return r.Shard == 1 }, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.Shards = 4 })},
	// Books and lines together.
	{"nothing was written", "", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) { s.silence(r.Run) })},
	{"nothing was recorded, and nothing written", "", "LOST P2", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) { s.silence(r.Run); s.drop(r) })},
	{"no record of a run", "", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) { s.drop(r) })},
	{"recorded on another node", "", "BOOKS", respellRow(ran, func(r *ledger.Row) { r.NodeName = "z" })},
	{"recorded as another attempt", "", "BOOKS", respellRow(ran, func(r *ledger.Row) { r.Attempt = 2 })},
	{"a success whose function failed", "plain", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) { s.line(r.Run, audit.End).Failed = true })},
	{"a failure whose function succeeded", "", "BOOKS", respellRow(ran, func(r *ledger.Row) { r.Outcome = jobs.OutcomeFailed })},
	{"ran, and recorded as not run", "plain", "CONTRADICTION", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		s.books.Rows = append(s.books.Rows, ledger.Row{Job: r.Job, Prev: r.Prev, Next: r.Next, At: r.At, Tick: r.Tick, Until: r.Tick, Count: 1, Ranged: true, Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate})
	})},
	{"recorded twice", "plain", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		again := *r
		again.Run, again.Token = "again", again.Token+1
		s.books.Rows = append(s.books.Rows, again)
	})},
	{"a run in flight for ever", "", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.books.Open = append(s.books.Open, ledger.Run{Job: r.Job, ID: "old", Tick: r.Tick, Attempt: 2, Token: 5, NodeName: "a", Granted: r.At, Trigger: "rerun"})
		s.Disturbed = nil
	})},
	{"a request that came to nothing", "", "LOST", func(s *spoilt) bool {
		s.job.Asked = append(slices.Clone(s.job.Asked), audit.Request{At: s.Read.Add(-20 * second), Run: "promised"})
		return true
	}},
	// Reasons.
	{"skipped, and nothing was going", "plain", "UNTRUE", instead(jobs.OutcomeSkipped, ledger.ReasonOverlap)},
	{"missed, and nothing was late", "plain", "UNTRUE", instead(jobs.OutcomeMissed, ledger.ReasonLate)},
	{"missed for a limit that there is not", "", "UNTRUE", instead(jobs.OutcomeMissed, ledger.ReasonStartWithin)},
	{"missed for a failover that there was not", "", "UNTRUE", instead(jobs.OutcomeMissed, ledger.ReasonFailover)},
	{"missed for want of a node, and there were some", "plain", "UNTRUE", instead(jobs.OutcomeMissed, ledger.ReasonNoNode)},
	{"missed, and nobody knows why", "", "UNTRUE", instead(jobs.OutcomeMissed, "because")},
	{"paused, and nobody had paused it", "plain", "UNTRUE", instead(jobs.OutcomePaused, ledger.ReasonPaused)},
	{"superseded, by nothing", "plain", "UNTRUE", instead(jobs.OutcomeSuperseded, ledger.ReasonReplacedDef)},
	{"abandoned, and its node was well", "", "UNTRUE", func(s *spoilt) bool {
		s.Disturbed = nil
		return respellRow(ran, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeAbandoned, ledger.ReasonLapsed })(s)
	}},
	{"timed out without a limit", "", "UNTRUE", respellRow(ran, func(r *ledger.Row) { r.Outcome = jobs.OutcomeTimedOut })},
	{"cancelled by nobody", "", "UNTRUE", respellRow(ran, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeCancelled, "cancelled by ops: no" })},
	{"replaced, in a job that replaces nothing", "", "UNTRUE", respellRow(ran, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeCancelled, ledger.ReasonReplaced })},
	{"an end that there is not", "", "UNTRUE", respellRow(ran, func(r *ledger.Row) { r.Outcome = jobs.OutcomeSkipped })},
	// Policies and people.
	{"granted while paused", "plain", "UNWANTED", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.job.Pauses = []audit.Span{{From: w.At.Add(-2 * second), Until: w.At.Add(second)}}
	})},
	{"granted too late", "prompt", "UNWANTED", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		i := slices.IndexFunc(s.Grants, func(g audit.Grant) bool { return g.Run == r.Run })
		s.Grants[i].At = s.Grants[i].At.Add(3 * second)
	})},
	{"granted after it was cancelled", "", "UNWANTED", respell(ran, func(s *spoilt, r *ledger.Row, w *audit.Write) {
		s.job.Cancelled = []audit.Cancel{{Request: audit.Request{At: w.At.Add(-second), Run: r.Run}, Pending: true}}
	})},
	{"run again more often than allowed", "", "UNWANTED", func(s *spoilt) bool {
		for i := range s.job.Versions {
			s.job.Versions[i].Definition.RerunMax = 0
		}
		return slices.ContainsFunc(s.books.Rows, func(r ledger.Row) bool { return r.Trigger == "rerun" && r.Token != 0 })
	}},
	{"run again after a success", "", "UNWANTED", func(s *spoilt) bool {
		return respellRow(func(r *ledger.Row) bool {
			return slices.ContainsFunc(s.books.Rows, func(x ledger.Row) bool {
				return x.Run == ledger.NextAttemptID(r.Run) && x.Token != 0 && x.Trigger == "rerun"
			})
		}, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeSucceeded, "" })(s)
	}},
	{"ran far too late to catch up", "plain", "UNWANTED", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		i := slices.IndexFunc(s.Grants, func(g audit.Grant) bool { return g.Run == r.Run })
		s.Grants[i].At = s.Grants[i].At.Add(14 * second)
	})},
	{"a follower without an answer", "", "LOST", respell(func(r *ledger.Row) bool { return r.Trigger == "after" }, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		s.silence(r.Run)
		s.drop(r)
	})},
	{"an alert that ran for a success", "alert", "UNWANTED", func(s *spoilt) bool {
		up := s.Books["fails"]
		up.Rows = slices.Clone(up.Rows)
		for i := range up.Rows {
			up.Rows[i].Outcome = jobs.OutcomeSucceeded
		}
		s.Books["fails"] = up
		return true
	}},
	{"a join that ran before all had ended", "both", "UNWANTED", func(s *spoilt) bool {
		up := s.Books["prompt"]
		for i := len(up.Rows) - 5; i > 0; i-- { // not among the newest, whose runs may have ended later than the books were read
			if tick := up.Rows[i].Tick; s.row(func(x *ledger.Row) bool { return x.Tick == tick && x.Trigger == "after" }) != nil {
				up.Rows = slices.Delete(slices.Clone(up.Rows), i, i+1)
				s.Books["prompt"] = up
				return true
			}
		}
		return false
	}},
	{"a follower that ran for a failure", "", "UNWANTED", func(s *spoilt) bool {
		up := s.Books[strings.Join(s.job.Versions[0].Definition.After, ", ")]
		i := slices.IndexFunc(up.Rows, func(r ledger.Row) bool {
			return ran(&r) && s.row(func(x *ledger.Row) bool { return x.Tick == r.Tick && !x.Ranged }) != nil
		})
		if i >= 0 {
			up.Rows = slices.Clone(up.Rows)
			up.Rows[i].Outcome = jobs.OutcomeFailed
			s.Books[up.Entry.Job] = up
		}
		return i >= 0
	}},
	// Missing effects.
	{"abandoned, and not run again", "crashes", "LOST", func(s *spoilt) bool {
		again := s.row(func(r *ledger.Row) bool { return r.Trigger == "rerun" })
		if again == nil {
			return false
		}
		s.silence(again.Run)
		s.drop(again)
		return true
	}},
	{"a failure of which no try has ended", "plain", "BOOKS", respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		r.Outcome = jobs.OutcomeFailed
		s.Writes = slices.DeleteFunc(s.Writes, func(w audit.Write) bool { return w.Run == r.Run && w.Phase == audit.End })
	})},
	{"cancelled, and another run was meant", "plain", "UNTRUE", func(s *spoilt) bool {
		s.job.Cancelled = []audit.Cancel{{Request: audit.Request{At: s.Read.Add(-20 * second), Run: "another"}}}
		return respellRow(ran, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeCancelled, "cancelled by ops: no" })(s)
	}},
	{"a run by hand before its instant", "plain", "EARLY", respell(byHand, func(_ *spoilt, _ *ledger.Row, w *audit.Write) { w.At = w.Tick.Add(-second) })},
	// The books alone.
	{"one request granted twice", "plain", "P1", func(s *spoilt) bool {
		return respellRow(byHand, func(r *ledger.Row) {
			again := *r
			again.Run, again.Request, again.Token = "another", cmp.Or(r.Request, r.Run), r.Token+1
			r.Request = again.Request
			s.books.Rows = append(s.books.Rows, again)
		})(s)
	}},
	{"a range is gone", "", "P2", func(s *spoilt) bool {
		return respellRow(ranged, func(r *ledger.Row) { s.drop(r) })(s) && s.job.Versions[0].Schedule != nil
	}},
	{"a range of another number", "queued", "P2", respellRow(ranged, func(r *ledger.Row) { r.Count++ })},
	{"a range recorded before it was due", "queued", "P2", respellRow(ranged, func(r *ledger.Row) { r.At = r.Tick - 1 })},
	{"a step to another tick", "", "P2", respellRow(ran, func(r *ledger.Row) { r.Next += 500 })},
	{"a run of another tick", "", "P2", respellRow(ran, func(r *ledger.Row) { r.Tick += 500 })},
	{"a row twice", "", "P1", func(s *spoilt) bool {
		return respellRow(ran, func(r *ledger.Row) { s.books.Rows = append(s.books.Rows, *r) })(s)
	}},
	{"one token for two runs", "", "P3", func(s *spoilt) bool {
		return respellRow(ran, func(r *ledger.Row) { r.Token = s.books.Entry.Token + 1 })(s)
	}},
	{"an attempt without the one before", "", "P1", respellRow(func(r *ledger.Row) bool { return r.Trigger == "rerun" }, func(r *ledger.Row) { r.Attempt = 3 })},
	{"a closed tick that is better than its shards", "", "P2", respellRow(func(r *ledger.Row) bool { return r.IsTick }, func(r *ledger.Row) { r.Outcome = jobs.OutcomeFailed })},
	{"shards of a tick that there is not", "", "P2", func(s *spoilt) bool {
		return respellRow(func(r *ledger.Row) bool { return r.IsTick }, func(r *ledger.Row) { s.drop(r) })(s)
	}},
	{"a cursor that ran ahead", "", "P2", func(s *spoilt) bool { s.books.Entry.Cursor += 1000; return s.job.Versions[0].Schedule != nil }},
	{"a cursor that stands still", "", "P2", func(s *spoilt) bool { s.books.Entry.Cursor -= 1000; return s.job.Versions[0].Schedule != nil }},
	{"a counter that missed something", "", "books", func(s *spoilt) bool {
		s.books.Entry.Counts = maps.Clone(s.books.Entry.Counts)
		s.books.Entry.Counts[jobs.OutcomeSucceeded]--
		return s.books.Entry.Counts[jobs.OutcomeSucceeded] > 0
	}},
	{"held for a run that there is not", "", "books", func(s *spoilt) bool { s.books.Entry.HolderRun = "nobody"; return true }},
	{"a definition that is another one's", "", "books", func(s *spoilt) bool { s.books.Entry.Digest = "0"; return true }},
	{"a cursor set back by nobody", "", "P2", respellRow(func(r *ledger.Row) bool { return r.Reason == ledger.ReasonRewound }, func(r *ledger.Row) { r.Next = r.Prev })},
}

// Each way to spoil true evidence is found, for every job that it applies to; and the evidence
// itself is sound. Another seed is played where a seed has no row to spoil, such as a range.
func TestSpoiltEvidenceIsFound(t *testing.T) {
	var played []Result
	for _, s := range spoilings {
		t.Run(s.name, func(t *testing.T) {
			for n := range 6 {
				if n == len(played) {
					p := everything()
					p.Seed += uint64(n)
					played = append(played, Run(t, p))
				}
				if s.each(t, played[n].evidence) > 0 {
					return
				}
			}
			t.Error("there was nothing to spoil")
		})
	}
}

// each spoils the evidence for one job after the other, expects a finding, and returns for how many
// jobs it could.
func (s spoiling) each(t *testing.T, evidence audit.Case) (done int) {
	t.Helper()
	for i := range evidence.Jobs {
		c := spoilt{Case: evidence}
		c.Jobs, c.Writes, c.Grants = slices.Clone(c.Jobs), slices.Clone(c.Writes), slices.Clone(c.Grants)
		c.Disturbed, c.Books = slices.Clone(c.Disturbed), maps.Clone(c.Books)
		c.job = &c.Jobs[i]
		c.job.Versions = slices.Clone(c.job.Versions)
		c.books = c.Books[c.job.Name]
		c.books.Rows = slices.Clone(c.books.Rows)
		if s.job != "" && s.job != c.job.Name || !s.by(&c) {
			continue
		}
		if s.want != "books" {
			c.recount()
		}
		c.Books[c.job.Name] = c.books
		done++
		found := audit.Check(c.Case).Findings
		if again := audit.Check(c.Case).Findings; !slices.EqualFunc(found, again, func(a, b audit.Finding) bool { return a.String() == b.String() }) {
			t.Errorf("%s: the same evidence is judged in two ways: %v, and %v", c.job.Name, found, again)
		}
		if !slices.ContainsFunc(found, func(f audit.Finding) bool {
			return strings.Contains(s.want, string(f.Kind)) || f.Kind == audit.KindBooks && strings.Contains(s.want, f.Promise)
		}) {
			t.Errorf("%s: want %s, found %v", c.job.Name, s.want, found)
		}
	}
	return done
}
