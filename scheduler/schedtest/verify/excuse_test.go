package verify

import (
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// TestLateWhileOthersLive has a start four seconds late, and something wrong when its tick came
// due. Promise P6 holds as long as a node was there to take it and nothing held the job up.
func TestLateWhileOthersLive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		want  []Kind
		spoil func(s spoiler, mine string, others []string)
	}{
		{"another node", []Kind{KindLate}, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others[0])
		}},
		{"all nodes but the one that ran it", []Kind{KindLate}, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others...)
		}},
		{"the node that ran it", nil, func(s spoiler, mine string, _ []string) { s.wrong(29*sec, 31*sec, false, mine) }},
		{"all nodes, one after another", nil, func(s spoiler, _ string, others []string) {
			s.c.Nodes = others
			s.wrong(29*sec, 30*sec, false, others[0])
			s.wrong(30*sec, 31*sec, false, others[1])
		}},
		{"Redis", nil, func(s spoiler, _ string, _ []string) { s.wrong(29*sec, 31*sec, false) }},
		{"this job, on another node", nil, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others[0])
			s.c.Disturbed[0].Job = "ten"
		}},
		{"another job, on another node", []Kind{KindLate}, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others[0])
			s.c.Disturbed[0].Job = "cron"
		}},
		{"another node, and the records are gone since", nil, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others[0])
			s.wrong(200*sec, 201*sec, true)
		}},
		{"another node, with a run of the job in flight", nil, func(s spoiler, _ string, others []string) {
			s.wrong(29*sec, 31*sec, false, others[0])
			l := lease(*s.row("ten", "ten-3"), s.c.Read.Add(-ms))
			l.Run, l.NodeName, l.Trigger = "by hand", others[0], manual
			s.c.Books.Open = []ledger.Lease{l}
		}},
		{"another node, and the tick before was held up until then", nil, func(s spoiler, _ string, others []string) {
			s.c.Settle = ms
			s.wrong(20*sec, 21*sec, false)
			s.shift("ten", "ten-3", 11*sec)
			s.wrong(30*sec, 31*sec, false, others[1]) // which did not run the tick before
		}},
		{"another node, and the tick before was held up, but answered", []Kind{KindLate}, func(s spoiler, _ string, others []string) {
			s.c.Settle = ms
			s.wrong(20*sec, 21*sec, false)
			s.shift("ten", "ten-3", 9*sec)
			s.wrong(30*sec, 31*sec, false, others[1]) // which did not run the tick before
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := healthy(t)
			c.Nodes = []string{"n0", "n1", "n2"}
			s := spoiler{t, &c}
			s.shift("ten", "ten-4", 4*sec)
			mine := s.row("ten", "ten-4").NodeName
			tt.spoil(s, mine, slices.DeleteFunc([]string{"n0", "n1", "n2"}, func(n string) bool { return n == mine }))
			if r := Check(c); !slices.Equal(kindsOf(r), tt.want) {
				t.Errorf("want %v: %s", tt.want, show(r))
			}
		})
	}
}

// TestMissedByAll is a tick that nobody could claim, Redis being away: no run of the job tells of it.
func TestMissedByAll(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	c.Nodes, c.Settle = []string{"n0", "n1", "n2"}, ms
	s := spoiler{t, &c}
	s.wrong(30*sec, 41*sec, false)
	s.erase("ten", "ten-4")
	s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(30*sec), after(30*sec), 1, after(40500*ms))
	s.unrecord("ten", "ten-5")
	s.unwrite("ten-5", Start)
	s.unwrite("ten-5", End)
	s.recordRange("ten", "ten-6", jobs.OutcomeMissed, "late", after(40*sec), after(40*sec), 1, after(50500*ms))
	if got := kindsOf(Check(c)); len(got) > 0 {
		t.Error(got)
	}
	c.Disturbed[0].Nodes = []string{"n1"}
	if got := kindsOf(Check(c)); !slices.Equal(got, []Kind{KindUntrue}) {
		t.Error(got)
	}
}

// TestAbandonedByWhatHitAnotherJob is not true.
func TestAbandonedByWhatHitAnotherJob(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	s := spoiler{t, &c}
	s.end("ten", "ten-4", jobs.OutcomeAbandoned)
	s.wrong(30*sec, 31*sec, false)
	if got := kindsOf(Check(c)); len(got) > 0 {
		t.Error(got)
	}
	c.Disturbed[0].Job = "cron"
	if got := kindsOf(Check(c)); !slices.Equal(got, []Kind{KindUntrue}) {
		t.Error(got)
	}
}
