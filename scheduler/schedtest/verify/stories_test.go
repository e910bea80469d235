package verify

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// TestStaleRun is a run whose node stood still until its lease was over: it writes once more, and
// the guard refuses that.
func TestStaleRun(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	s := spoiler{t, &c}
	s.outlive("cron-4", "cron-5")
	s.wrong(36*sec, 45*sec, false, s.row("cron", "cron-4").NodeName)
	s.end("cron", "cron-4", jobs.OutcomeAbandoned)
	if r := Check(c); len(r.Findings) > 0 || r.Stale != 1 {
		t.Error(show(r))
	}
	// Redis forgot the run instead: then there is no record, and the refusal alone tells.
	s.unrecord("cron", "cron-4")
	s.wrong(40*sec, 41*sec, true)
	if r := Check(c); len(r.Findings) > 0 || r.Stale != 1 || r.Excused != 0 {
		t.Error(show(r))
	}
	// And it never wrote again, as its node was gone.
	s.unwrite("cron-4", End)
	if r := Check(c); len(r.Findings) > 0 || r.Excused == 0 {
		t.Error(show(r))
	}
}

// TestStaleStart is a run whose node stood still between the grant and the start.
func TestStaleStart(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	s := spoiler{t, &c}
	s.outlive("cron-4", "cron-5")
	start := *s.line("cron-4", Start)
	s.unwrite("cron-4", Start)
	i := slices.Index(c.Writes, *s.line("cron-5", Start))
	start.At, start.Refused = c.Writes[i].At.Add(ms), true
	c.Writes = slices.Insert(c.Writes, i+1, start)
	s.renumber()
	s.wrong(35*sec, 45*sec, false, s.row("cron", "cron-4").NodeName)
	if got := kindsOf(Check(c)); !slices.Equal(got, []Kind{KindOverlap}) {
		t.Error(got)
	}
	s.end("cron", "cron-4", jobs.OutcomeAbandoned)
	if r := Check(c); len(r.Findings) > 0 || r.Stale != 2 {
		t.Error(show(r))
	}
}

// TestStartRecordedAsSkipped has no record of the run, and one that says that there was none.
func TestStartRecordedAsSkipped(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	s := spoiler{t, &c}
	s.unrecord("ten", "ten-4")
	s.recordRange("ten", "ten-5", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	if got := kindsOf(Check(c)); !slices.Equal(got, []Kind{KindBooks, KindContradiction}) {
		t.Error(got)
	}
}

// TestOpenSpans end when the books were read; a tick at that very instant is due.
func TestOpenSpans(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	v := &c.Jobs[0].Versions[0]
	v.Certain.Until, v.Possible.Until = time.Time{}, time.Time{}
	c.Read, c.Books.Cursor["ten"] = after(300*sec), after(300*sec)
	if r := Check(c); len(r.Findings) > 0 || r.Ticks != 91 || r.Verdicts[Pending] != 1 {
		t.Error(show(r))
	}
}

// TestRowChoosesItsVersion by its count, where two versions have a tick at both of its ends.
func TestRowChoosesItsVersion(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	v := c.Jobs[0].Versions[0]
	v.Schedule = mustEvery(20 * sec)
	for _, versions := range [][]Version{{c.Jobs[0].Versions[0], v}, {v, c.Jobs[0].Versions[0]}} {
		j := c.Jobs[0]
		j.Versions = versions
		tr := newTrial(&c, j, &Report{Verdicts: map[Verdict]int{}}, nil, nil)
		for _, n := range []int{3, 5} {
			if got := tr.cover(after(20*sec).UnixMilli(), after(60*sec).UnixMilli(), int64(n)); len(got) != n {
				t.Errorf("a row that counts %d was given %d ticks", n, len(got))
			}
		}
	}
}

// TestGrantedAgainAfterALoss is a run that was pending, ran, and is pending again after Redis was
// rolled back: it keeps its id and gets a new token.
func TestGrantedAgainAfterALoss(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		loses bool
		spoil func(s spoiler)
		want  []Kind
	}{
		{true, func(spoiler) {}, nil},
		{true, func(s spoiler) { s.unwrite("twice", End) }, []Kind{KindBooks, KindOverlap}},
		{false, func(spoiler) {}, []Kind{KindBlind, KindBooks, KindOverlap, KindPhantom, KindToken}},
	} {
		c := healthy(t)
		s := spoiler{t, &c}
		s.wrong(8*sec, 8500*ms, tt.loses)
		s.again("asked", "asked-2", "twice", 2*sec)
		tt.spoil(s)
		s.unrecord("asked", "asked-2")
		for i := range c.Writes {
			if c.Writes[i].Run == "twice" {
				c.Writes[i].Run = "asked-2"
			}
		}
		s.row("asked", "twice").Run = "asked-2"
		// The band around a loss excuses what is wrong with the books; here it must not reach the tick.
		c.Settle = ms
		if r := Check(c); !slices.Equal(kindsOf(r), tt.want) || tt.loses && r.Excused != 1 {
			t.Errorf("loses %v: want %v: %s", tt.loses, tt.want, show(r))
		}
	}
}

// TestPendingRunWaits while its job is hardly ever idle, as a tick would.
func TestPendingRunWaits(t *testing.T) {
	t.Parallel()
	c := blank()
	until := after(time.Minute)
	play(&c, plan{name: "busy", schedule: mustEvery(5 * sec), lasts: func() time.Duration { return 4950 * ms },
		lag: func() time.Duration { return 10 * ms }}, until)
	c = finish(c, until)
	c.Read = until
	c.Books.Open = []ledger.Lease{{Job: "busy", Run: "by hand", Trigger: manual, Granted: after(2 * sec).UnixMilli()}}
	if r := Check(c); len(r.Findings) > 0 {
		t.Error(show(r))
	}
	c.Books.Open[0].Token = 1
	if got := kindsOf(Check(c)); !slices.Equal(got, []Kind{KindBooks}) {
		t.Errorf("one that is granted does not wait: %v", got)
	}
}

// TestTokensAreNeverExcused plants a token that falls around a loss.
func TestTokensAreNeverExcused(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	s := spoiler{t, &c}
	s.wrong(29*sec, 31*sec, true)
	s.retoken("ten", "ten-4", 1)
	if got := kindsOf(Check(c)); len(got) != 1 || got[0] != KindToken {
		t.Error(got)
	}
}

// TestTicksThatMayRun need not, but only as their schedule says.
func TestTicksThatMayRun(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	c.Jobs[0].Versions[0].Certain.From = after(40 * sec)
	s := spoiler{t, &c}
	s.erase("ten", "ten-4")
	if r := Check(c); len(r.Findings) > 0 || r.Ticks != 89 {
		t.Error(show(r))
	}
	c.Jobs[0].Versions[0].Possible.From = after(40 * sec)
	if got := kindsOf(Check(c)); len(got) != 1 || got[0] != KindPhantom {
		t.Error(got)
	}
}
