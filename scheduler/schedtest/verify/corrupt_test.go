package verify

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// corruptions are single changes of a case that can never be right, whatever happened in it. Each
// gets a run that succeeded, by its start, end and row, and says whether it could be applied.
var corruptions = []struct {
	name  string
	spoil func(c *Case, v victim) bool
}{
	{"drop the start", func(c *Case, v victim) bool {
		c.Writes = slices.Delete(c.Writes, v.start, v.start+1)
		return true
	}},
	{"drop the end", func(c *Case, v victim) bool {
		c.Writes = slices.Delete(c.Writes, v.end, v.end+1)
		return true
	}},
	{"drop the row", func(c *Case, v victim) bool {
		c.Books.Rows[v.job] = slices.Delete(c.Books.Rows[v.job], v.row, v.row+1)
		return true
	}},
	{"drop all of the run", func(c *Case, v victim) bool {
		if v.r.Trigger == manual || !certain(*c, v.job, v.r.Tick) {
			return false // a request may come to nothing, as may a tick near a deployment
		}
		c.Writes = slices.DeleteFunc(c.Writes, func(w Write) bool { return w.Run == v.r.Run })
		c.Books.Rows[v.job] = slices.Delete(c.Books.Rows[v.job], v.row, v.row+1)
		return true
	}},
	{"start again", func(c *Case, v victim) bool {
		c.Writes = slices.Insert(c.Writes, v.start, c.Writes[v.start])
		return true
	}},
	{"end again", func(c *Case, v victim) bool {
		c.Writes = slices.Insert(c.Writes, v.end, c.Writes[v.end])
		return true
	}},
	{"record again", func(c *Case, v victim) bool {
		c.Books.Rows[v.job] = slices.Insert(c.Books.Rows[v.job], v.row, *v.r)
		return true
	}},
	{"start before the tick", func(c *Case, v victim) bool {
		c.Writes[v.start].At = instant(v.r.Tick).Add(-ms)
		if v.r.Trigger == manual {
			c.Writes[v.start].At = c.Writes[v.start].At.Add(-ms) // one is between request and tick
		}
		return v.r.Trigger != manual || v.first
	}},
	{"another tick in the sink", func(c *Case, v victim) bool {
		c.Writes[v.start].Tick = c.Writes[v.start].Tick.Add(ms)
		return true
	}},
	{"another node in the sink", func(c *Case, v victim) bool {
		c.Writes[v.start].Node = "n9"
		return true
	}},
	{"another run in the sink", func(c *Case, v victim) bool {
		c.Writes[v.start].Run = "ghost"
		return true
	}},
	{"another job in the sink", func(c *Case, v victim) bool {
		c.Writes[v.start].Job = "ghost"
		return true
	}},
	{"another token in the sink", func(c *Case, v victim) bool {
		c.Writes[v.start].Token++
		return true
	}},
	{"a token of the past, everywhere", func(c *Case, v victim) bool {
		if v.first {
			return false
		}
		v.r.Token, c.Writes[v.start].Token, c.Writes[v.end].Token = 1, 1, 1
		return true
	}},
	{"refused, though it was not stale", func(c *Case, v victim) bool {
		c.Writes[v.end].Refused = true
		return true
	}},
	{"another tick in the books", func(_ *Case, v victim) bool {
		v.r.Tick++
		return true
	}},
	{"another run in the books", func(_ *Case, v victim) bool {
		v.r.Run = "ghost"
		return true
	}},
	{"a run is a tick that did not run", func(_ *Case, v victim) bool {
		v.r.Ranged, v.r.Until, v.r.Count, v.r.Outcome, v.r.Reason = true, v.r.Tick, 1, jobs.OutcomeSkipped, "overlap"
		return true
	}},
	{"a run ended as nothing ends", func(_ *Case, v victim) bool {
		v.r.Outcome = jobs.OutcomePaused
		return true
	}},
	{"the run is in flight too", func(c *Case, v victim) bool {
		c.Books.Open = append(c.Books.Open, lease(*v.r, instant(v.r.Started)))
		return true
	}},
	{"the audit complains", func(c *Case, _ victim) bool {
		c.Books.Chain = append(c.Books.Chain, "gap")
		return true
	}},
	{"the job is not configured", func(c *Case, v victim) bool {
		c.Jobs = slices.DeleteFunc(c.Jobs, func(j Job) bool { return j.Name == v.job })
		return true
	}},
	{"a row of several counts one more", func(c *Case, v victim) bool {
		rows := c.Books.Rows[v.job]
		i := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Ranged && r.Count > 0 })
		if i >= 0 {
			rows[i].Count++
		}
		return i >= 0
	}},
	{"a row of several begins elsewhere", func(c *Case, v victim) bool {
		rows := c.Books.Rows[v.job]
		i := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Ranged && r.Count > 0 })
		if i >= 0 {
			rows[i].Tick++
		}
		return i >= 0
	}},
	{"a row of several has gone", func(c *Case, v victim) bool {
		rows := c.Books.Rows[v.job]
		i := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Ranged && r.Count > 0 && certain(*c, v.job, r.Tick) })
		if i >= 0 {
			c.Books.Rows[v.job] = slices.Delete(rows, i, i+1)
		}
		return i >= 0
	}},
}

// victim is a run that succeeded: where its lines and its row are.
type victim struct {
	job             string
	start, end, row int
	r               *ledger.Row
	first           bool // run of its job
}

// certain says whether a tick must be accounted for.
func certain(c Case, job string, tick int64) bool {
	at := instant(tick)
	for _, j := range c.Jobs {
		for _, version := range j.Versions {
			if s := version.Certain; j.Name == job && !at.Before(s.From) && at.Before(s.Until) && len(version.Schedule.Ticks(at, at.Add(1))) > 0 {
				return true
			}
		}
	}
	return false
}

func victims(c Case) []victim {
	var out []victim
	for _, j := range c.Jobs {
		for i := range c.Books.Rows[j.Name] {
			r := &c.Books.Rows[j.Name][i]
			if r.Ranged || r.Outcome != jobs.OutcomeSucceeded {
				continue
			}
			find := func(p Phase) int {
				return slices.IndexFunc(c.Writes, func(w Write) bool { return w.Run == r.Run && w.Phase == p })
			}
			out = append(out, victim{j.Name, find(Start), find(End), i, r, r.Run == j.Name+"-1"})
		}
	}
	return out
}

// TestCorruptionsAreFound changes one thing in a history in which much happened rightly.
func TestCorruptionsAreFound(t *testing.T) {
	for _, corruption := range corruptions {
		t.Run(corruption.name, func(t *testing.T) {
			t.Parallel()
			applied := 0
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				c := eventful(seeded(seed))
				all := victims(c)
				if len(all) == 0 {
					return
				}
				v := all[rapid.IntRange(0, len(all)-1).Draw(t, "victim")]
				what := c.Writes[v.start].String()
				if !corruption.spoil(&c, v) {
					return
				}
				applied++
				for i := range c.Writes {
					c.Writes[i].No = i + 1
				}
				if r := Check(c); len(r.Findings) == 0 {
					t.Fatalf("seed %d: nothing found, after a change to %s: %s", seed, what, show(r))
				}
			})
			if applied == 0 {
				t.Error("it could never be applied")
			}
		})
	}
}

// TestReportIsTheSameEachTime holds for a case with many findings.
func TestReportIsTheSameEachTime(t *testing.T) {
	c := eventful(seeded(3))
	c.Disturbed = nil
	for i := range c.Jobs {
		c.Jobs[i].Name += "-renamed"
	}
	want := show(Check(c))
	for range 20 {
		if got := show(Check(c)); got != want {
			t.Fatalf("%s\n%s", want, got)
		}
	}
}
