package verify

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

const sec = time.Second

// fault is a change of the healthy case and the one finding that it must give. Run ten-4 is of the
// tick at 30 s, cron-4 of the one at 35 s.
type fault struct {
	name  string
	want  Kind
	spoil func(s spoiler)
}

// plantedRuns are faults of what ran, and when.
var plantedRuns = []fault{
	{"a tick is in neither sink nor books", KindLost, func(s spoiler) { s.erase("ten", "ten-4") }},
	{"the same, and the cursor stands at it", KindLost, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.c.Books.Cursor["ten"] = after(30 * sec)
	}},
	{"the last tick is lost, and the schedule has no more", KindLost, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = time.Time{}
		s.c.Read, s.c.Books.Cursor["cron"] = after(296*sec), time.Time{}
	}},
	{"the same, as the ledger spells it", KindLost, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = instant(0)
		s.c.Read, s.c.Books.Cursor["cron"] = after(296*sec), time.Time{}
	}},
	{"the cursor stands at a tick for long, and all nodes were drained in the end", KindLost, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = after(290 * sec)
		s.wrong(293*sec, 0, false)
	}},
	{"the cursor stands at a tick between two faults", KindLost, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = after(290 * sec)
		s.wrong(250*sec, 300*sec, false)
		s.wrong(323*sec, 0, false)
	}},
	{"a tick is lost long before Redis was emptied", KindLost, func(s spoiler) {
		s.wrong(200*sec, 201*sec, true)
		s.erase("ten", "ten-4")
	}},
	{"a tick ran twice, each time with a grant of its own", KindDouble, func(s spoiler) { s.again("ten", "ten-4", "again", sec) }},
	{"a tick ran twice, the second start was refused", KindDouble, func(s spoiler) {
		s.again("ten", "ten-4", "again", sec)
		for _, p := range []Phase{Start, End} {
			w := s.line("ten-4", p)
			w.Token = s.line("ten-3", p).Token - 1
			w.Refused = true
		}
		s.row("ten", "ten-4").Token = s.line("ten-4", Start).Token
	}},
	{"one run called its function twice", KindDouble, func(s spoiler) {
		i := slices.Index(s.c.Writes, *s.line("ten-4", Start))
		s.c.Writes = slices.Insert(s.c.Writes, i, s.c.Writes[i])
		s.renumber()
	}},
	{"a start a nanosecond early", KindEarly, func(s spoiler) { s.line("ten-4", Start).At = after(30*sec - 1) }},
	{"a start too late", KindLate, func(s spoiler) { s.shift("ten", "ten-4", 2*sec) }},
	{"a start too late, before something was wrong", KindLate, func(s spoiler) {
		s.shift("ten", "ten-4", 4*sec)
		s.wrong(33*sec, 34*sec, false)
	}},
	{"a start too late behind a short run that began after its tick", KindLate, func(s spoiler) {
		s.shift("asked", "asked-2", 4*sec)
		s.shift("asked", "asked-3", 2500*ms)
	}},
	{"a start too late behind a run that was going", KindLate, func(s spoiler) {
		s.lasts("cron", "cron-3", 36*sec)
		s.shift("cron", "cron-4", 3*sec)
	}},
	{"a start too late beside a run that was going, by policy", KindLate, func(s spoiler) {
		s.c.Jobs[1].Overlaps = true
		s.lasts("cron", "cron-3", 36*sec)
		s.shift("cron", "cron-4", 2500*ms)
	}},
	{"a start too late, long after a run that was abandoned", KindLate, func(s spoiler) {
		s.wrong(20*sec, 21*sec, false)
		s.row("ten", "ten-3").At = after(36 * sec).UnixMilli()
		s.end("ten", "ten-3", jobs.OutcomeAbandoned)
		s.unwrite("ten-3", End)
		s.shift("ten", "ten-8", 4*sec)
	}},
	{"a start of no tick", KindPhantom, func(s spoiler) {
		s.again("ten", "ten-4", "odd", 3*sec)
		s.row("ten", "odd").Tick += 3000
		s.line("odd", Start).Tick, s.line("odd", End).Tick = after(33*sec), after(33*sec)
	}},
	{"a start of a tick a microsecond off", KindPhantom, func(s spoiler) {
		s.again("ten", "ten-4", "odd", 3*sec)
		s.unrecord("ten", "odd")
		s.row("ten", "ten-4").Run = "odd"
		s.unwrite("ten-4", Start)
		s.unwrite("ten-4", End)
		s.row("ten", "odd").Token++
		s.line("odd", Start).Tick, s.line("odd", End).Tick = after(30*sec+time.Microsecond), after(30*sec+time.Microsecond)
	}},
	{"a line of a job nobody configured", KindPhantom, func(s spoiler) {
		w := *s.line("ten-4", Start)
		w.Job = "ghost"
		s.c.Writes = append(s.c.Writes, w)
	}},
	{"the end of a run that had not started", KindPhantom, func(s spoiler) {
		w := *s.line("ten-30", End)
		w.Run, w.Token = "ghost", w.Token+1
		s.c.Writes = append(s.c.Writes, w)
		s.renumber()
	}},
	{"a run ended twice", KindPhantom, func(s spoiler) {
		i := slices.Index(s.c.Writes, *s.line("ten-4", End))
		s.c.Writes = slices.Insert(s.c.Writes, i, s.c.Writes[i])
		s.renumber()
	}},
	{"a line of an unknown phase", KindPhantom, func(s spoiler) {
		s.line("ten-30", End).Phase = "middle"
		s.end("ten", "ten-30", jobs.OutcomeFailed)
	}},
	{"a range of no ticks", KindPhantom, func(s spoiler) {
		s.recordRange("ten", "ten-4", jobs.OutcomeMissed, "late", after(31*sec), after(32*sec), 2, after(45*sec))
	}},
	{"a range that begins at no tick", KindPhantom, func(s spoiler) {
		s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(31*sec), after(40*sec), 1, after(45*sec))
	}},
	{"a range that ends at no tick", KindPhantom, func(s spoiler) {
		s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(40*sec), after(41*sec), 1, after(45*sec))
	}},
	{"an abandoned run of no tick", KindPhantom, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false)
		row := *s.row("ten", "ten-4")
		row.Tick, row.Run, row.Outcome = row.Tick+3000, "odd", jobs.OutcomeAbandoned
		s.c.Books.Rows["ten"] = append(s.c.Books.Rows["ten"], row)
	}},
}

// retoken gives a run another token, in sink and books.
func (s spoiler) retoken(job, run string, token int64) {
	s.line(run, Start).Token, s.row(job, run).Token = token, token
	s.line(run, End).Token = token
}

// outlive moves a run's end behind the next one's start, where the guard refuses it.
func (s spoiler) outlive(run, next string) {
	end := *s.line(run, End)
	s.unwrite(run, End)
	i := slices.Index(s.c.Writes, *s.line(next, Start))
	end.At, end.Refused = s.c.Writes[i].At.Add(sec), true
	s.c.Writes = slices.Insert(s.c.Writes, i+1, end)
	s.renumber()
}

// lease is what a run that has a row looked like before.
func lease(r ledger.Row, granted time.Time) ledger.Lease {
	return ledger.Lease{Run: r.Run, Job: r.Job, Tick: r.Tick, Attempt: 1, Token: r.Token, Node: r.Node, NodeName: r.NodeName,
		Trigger: r.Trigger, Granted: granted.UnixMilli()}
}

func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	covered := make(map[Kind]bool)
	for _, tt := range slices.Concat(plantedRuns, plantedRecords, plantedOrder) {
		covered[tt.want] = true
		t.Run(tt.name, func(t *testing.T) {
			c := healthy(t)
			tt.spoil(spoiler{t, &c})
			if r := Check(c); len(r.Findings) != 1 || r.Findings[0].Kind != tt.want {
				t.Errorf("want one %s, got %s", tt.want, show(r))
			}
		})
	}
	for _, k := range []Kind{KindLost, KindDouble, KindEarly, KindLate, KindPhantom, KindContradiction, KindUntrue, KindToken, KindOverlap, KindBooks, KindBlind, KindDisagree} {
		if !covered[k] {
			t.Errorf("no fault is planted that is %s", k)
		}
	}
}
