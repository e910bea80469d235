package verify

import (
	"fmt"
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// inParts is the healthy case with each tick of job ten split into three shards, ten-4.0 to ten-4.2 for ten-4.
func inParts(t *testing.T) Case {
	c := healthy(t)
	c.Jobs[0].Shards = 3
	var writes []Write
	for _, w := range c.Writes {
		if w.Job != "ten" {
			writes = append(writes, w)
			continue
		}
		for shard := range 3 {
			s := w
			s.Shard, s.Shards, s.Run, s.Token = shard, 3, ledger.ShardRun(w.Run, shard), w.Token+int64(shard)
			writes = append(writes, s)
		}
	}
	var rows []ledger.Row
	for _, r := range c.Books.Rows["ten"] {
		for shard := range 3 {
			s := r
			s.Of, s.Shard, s.Shards, s.Run, s.Token, s.Prev, s.Next = r.Run, shard, 3, ledger.ShardRun(r.Run, shard), r.Token+int64(shard), 0, 0
			rows = append(rows, s)
		}
		r.Whole, r.Shards, r.Token, r.Node, r.NodeName = true, 3, 0, "", ""
		rows = append(rows, r)
	}
	c.Writes, c.Books.Rows["ten"] = writes, rows
	spoiler{t, &c}.renumber()
	return c
}

// part changes the lines of a shard, and its row.
func (s spoiler) part(run string, lines func(*Write), row func(*ledger.Row)) {
	s.t.Helper()
	for _, p := range []Phase{Start, End} {
		lines(s.line(run, p))
	}
	row(s.row("ten", run))
}

// plantedShards are faults of sharded ticks, and the kinds of findings that each gives.
var plantedShards = []struct {
	name  string
	want  []Kind
	spoil func(s spoiler)
}{
	{"one shard counts otherwise than the others", []Kind{KindMixed}, func(s spoiler) {
		s.part("ten-4.1", func(w *Write) { w.Shards = 2 }, func(r *ledger.Row) { r.Shards = 2 })
	}},
	{"a tick ran whole beside its shards", []Kind{KindBooks, KindMixed, KindOverlap}, func(s spoiler) {
		s.part("ten-4.0", func(w *Write) { w.Shards = 1 }, func(r *ledger.Row) { r.Shards, r.Of = 1, "" })
	}},
	{"a shard is in neither sink nor books", []Kind{KindBooks, KindLost}, func(s spoiler) { s.erase("ten", "ten-4.1") }},
	{"a shard has no row", []Kind{KindBooks}, func(s spoiler) { s.unrecord("ten", "ten-4.1") }},
	{"a tick has no row", []Kind{KindBooks}, func(s spoiler) { s.unrecord("ten", "ten-4") }},
	{"a tick has two rows", []Kind{KindContradiction}, func(s spoiler) {
		s.c.Books.Rows["ten"] = append(s.c.Books.Rows["ten"], *s.row("ten", "ten-4"))
	}},
	{"a tick is said to have failed", []Kind{KindBooks}, func(s spoiler) { s.end("ten", "ten-4", jobs.OutcomeFailed) }},
	{"a tick has a reason that is not true", []Kind{KindBooks}, func(s spoiler) { s.row("ten", "ten-4").Reason = "1 of 3 shards did not succeed" }},
	{"a tick succeeded, and a shard of it failed", []Kind{KindBooks}, func(s spoiler) { s.end("ten", "ten-4.1", jobs.OutcomeFailed) }},
	{"a tick is closed before its last shard", []Kind{KindBooks}, func(s spoiler) {
		rows := s.c.Books.Rows["ten"]
		i := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Run == "ten-4" })
		rows[i-1], rows[i] = rows[i], rows[i-1]
	}},
	{"a tick is open, and nothing of it goes on", []Kind{KindBooks}, func(s spoiler) {
		r := *s.row("ten", "ten-30")
		s.unrecord("ten", "ten-30")
		s.c.Books.Open = append(s.c.Books.Open, ledger.Lease{Run: r.Run, Job: "ten", Tick: r.Tick, Shards: 3, Whole: true, Left: 1, Granted: r.Started})
	}},
	{"a shard is recorded as another", []Kind{KindBooks, KindContradiction}, func(s spoiler) { s.row("ten", "ten-4.1").Shard = 2 }},
	{"a shard ran twice", []Kind{KindDouble}, func(s spoiler) { s.again("ten", "ten-4.2", "odd", sec) }},
	{"a shard starts too late, while another one is going", []Kind{KindLate}, func(s spoiler) {
		s.lasts("ten", "ten-4.0", 38*sec)
		s.shift("ten", "ten-4.1", 4*sec)
	}},
	{"a shard goes on when the next tick is open", []Kind{KindOverlap}, func(s spoiler) {
		end := *s.line("ten-4.1", End)
		s.unwrite("ten-4.1", End)
		end.At = after(41 * sec)
		i := slices.Index(s.c.Writes, *s.line("ten-5.0", Start))
		s.c.Writes = slices.Insert(s.c.Writes, i+1, end)
		s.renumber()
	}},
	{"a shard has a smaller token than that one of the tick before", []Kind{KindToken}, func(s spoiler) {
		token := s.line("ten-3.1", Start).Token - 5
		s.part("ten-4.1", func(w *Write) { w.Token = token }, func(r *ledger.Row) { r.Token = token })
	}},
	{"a shard is refused though no other run of it was", []Kind{KindToken}, func(s spoiler) { s.line("ten-4.0", Start).Refused = true }},
	{"a tick is recorded as skipped, and one shard ran", []Kind{KindContradiction}, func(s spoiler) {
		s.recordRange("ten", "ten-4.0", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(30*sec+20*ms))
	}},
}

func TestPlantedFaultsOfShards(t *testing.T) {
	t.Parallel()
	if r := Check(inParts(t)); len(r.Findings) > 0 || r.Verdicts[Satisfied] != 90 || r.Runs != 93+60 {
		t.Fatal(show(r))
	}
	for _, tt := range plantedShards {
		t.Run(tt.name, func(t *testing.T) {
			c := inParts(t)
			tt.spoil(spoiler{t, &c})
			if r := Check(c); fmt.Sprint(kindsOf(r)) != fmt.Sprint(tt.want) {
				t.Errorf("want %s, got %s", tt.want, show(r))
			}
		})
	}
}

// What may happen to shards is no finding: they write in any order of their tokens, one may fail, one may end with
// its node, one may not have started when everything ends.
func TestWhatMayHappenToShards(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s spoiler){
		"tokens in another order": func(s spoiler) {
			one, other := s.line("ten-4.0", Start).Token, s.line("ten-4.2", Start).Token
			s.part("ten-4.0", func(w *Write) { w.Token = other }, func(r *ledger.Row) { r.Token = other })
			s.part("ten-4.2", func(w *Write) { w.Token = one }, func(r *ledger.Row) { r.Token = one })
		},
		"a partial failure": func(s spoiler) {
			s.end("ten", "ten-4.1", jobs.OutcomeFailed)
			s.end("ten", "ten-4", jobs.OutcomeFailed)
			s.row("ten", "ten-4").Reason = "1 of 3 shards did not succeed"
		},
		"a node dies": func(s spoiler) {
			s.wrong(30*sec, 31*sec, false)
			s.unwrite("ten-4.1", End)
			s.end("ten", "ten-4.1", jobs.OutcomeAbandoned)
			s.end("ten", "ten-4", jobs.OutcomeAbandoned)
			s.row("ten", "ten-4").Reason = "1 of 3 shards did not succeed"
		},
		"mixed, where Redis lost it": func(s spoiler) {
			s.wrong(29*sec, 31*sec, true)
			s.part("ten-4.1", func(w *Write) { w.Shards = 2 }, func(r *ledger.Row) { r.Shards = 2 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := inParts(t)
			spoil(spoiler{t, &c})
			if r := Check(c); len(r.Findings) > 0 {
				t.Error(show(r))
			}
		})
	}
}
