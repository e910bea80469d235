package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// goodBooks are what the ledger records of goodLines.
func goodBooks() books {
	b := books{verify.Books{Rows: map[string][]ledger.Row{}}}
	for _, l := range starts(goodLines()) {
		b.Rows[l.job] = append(b.Rows[l.job], ledger.Row{
			Job: l.job, Tick: l.tick.UnixMilli(), Run: l.run, Token: l.token, NodeName: l.node, Outcome: jobs.OutcomeSucceeded,
		})
	}
	return b
}

// passedOver is a row of ticks that did not run.
func passedOver(from, to int, outcome jobs.Outcome) ledger.Row {
	return ledger.Row{Job: "each-01", Ranged: true, Tick: second(from).UnixMilli(), Until: second(to).UnixMilli(), Count: int64(to - from + 1), Outcome: outcome}
}

// judged are cases of the books alone: each-01's rows 4 and 5, of seconds 4 and 5, are replaced.
var judged = []struct {
	name  string
	rows  func(four, five ledger.Row) []ledger.Row
	rules rules
	want  string // part of the one violation, "" for none
	gone  map[int]string
}{
	{name: "all succeeded", rows: func(a, b ledger.Row) []ledger.Row { return []ledger.Row{a, b} }},
	{name: "failed", rows: func(a, b ledger.Row) []ledger.Row {
		a.Outcome = jobs.OutcomeFailed
		return []ledger.Row{a, b}
	}, want: "failed"},
	{name: "abandoned by a node that lives", rows: func(a, b ledger.Row) []ledger.Row {
		a.Outcome = jobs.OutcomeAbandoned
		return []ledger.Row{a, b}
	}, rules: rules{struck: map[string]bool{"n9": true}}, want: "abandoned"},
	{name: "abandoned by a killed node", rows: func(a, b ledger.Row) []ledger.Row {
		a.Outcome = jobs.OutcomeAbandoned
		return []ledger.Row{a, b}
	}, rules: rules{struck: map[string]bool{"n2": true}}, gone: map[int]string{4: "abandoned"}},
	{name: "skipped behind an abandoned run", rows: func(a, _ ledger.Row) []ledger.Row {
		a.Outcome = jobs.OutcomeAbandoned
		return []ledger.Row{passedOver(5, 5, jobs.OutcomeSkipped), a}
	}, rules: rules{struck: map[string]bool{"n2": true}}, gone: map[int]string{4: "abandoned", 5: "skipped"}},
	{name: "skipped after the abandoned run was reaped", rows: func(a, _ ledger.Row) []ledger.Row {
		a.Outcome = jobs.OutcomeAbandoned
		return []ledger.Row{a, passedOver(5, 5, jobs.OutcomeSkipped)}
	}, rules: rules{struck: map[string]bool{"n2": true}}, want: "skipped", gone: map[int]string{4: "abandoned"}},
	{name: "skipped after the abandoned run was reaped, having come due before that", rows: func(a, _ ledger.Row) []ledger.Row {
		a.Outcome, a.At = jobs.OutcomeAbandoned, second(5).UnixMilli()+1
		return []ledger.Row{a, passedOver(5, 5, jobs.OutcomeSkipped)}
	}, rules: rules{struck: map[string]bool{"n2": true}}, gone: map[int]string{4: "abandoned", 5: "skipped"}},
	{name: "skipped behind a run that succeeded", rows: func(a, _ ledger.Row) []ledger.Row {
		return []ledger.Row{passedOver(5, 5, jobs.OutcomeSkipped), a}
	}, want: "skipped"},
	{name: "the same in the gap", rows: func(a, _ ledger.Row) []ledger.Row {
		return []ledger.Row{passedOver(5, 5, jobs.OutcomeSkipped), a}
	}, rules: rules{gap: window{second(5), second(5)}}, gone: map[int]string{5: "skipped"}},
	{name: "skipped with nothing ahead, in the gap", rows: func(a, _ ledger.Row) []ledger.Row {
		return []ledger.Row{a, passedOver(5, 5, jobs.OutcomeSkipped)}
	}, rules: rules{gap: window{second(5), second(5)}}, want: "skipped"},
	{name: "missed in the gap", rows: func(_, _ ledger.Row) []ledger.Row {
		return []ledger.Row{passedOver(4, 5, jobs.OutcomeMissed)}
	}, rules: rules{gap: window{second(4), second(5)}}, gone: map[int]string{4: "missed", 5: "missed"}},
	{name: "missed partly outside of the gap", rows: func(_, _ ledger.Row) []ledger.Row {
		return []ledger.Row{passedOver(4, 5, jobs.OutcomeMissed)}
	}, rules: rules{gap: window{second(4), second(4)}}, want: "12:00:05.000: missed", gone: map[int]string{4: "missed"}},
}

func TestJudge(t *testing.T) {
	for _, tt := range judged {
		t.Run(tt.name, func(t *testing.T) {
			b := goodBooks()
			rows := b.Rows["each-01"]
			b.Rows["each-01"] = slices.Replace(rows, 4, 6, tt.rows(rows[4], rows[5])...)
			a := b.judge(twoJobs(), tt.rules)
			if tt.want == "" && len(a.violations) > 0 || tt.want != "" && (len(a.violations) != 1 || !strings.Contains(a.violations[0].what, tt.want)) {
				t.Errorf("want %q, got %v", tt.want, a.violations)
			}
			if len(a.absent) != len(tt.gone) {
				t.Errorf("absent: %v, want %v", a.absent, tt.gone)
			}
			for n, reason := range tt.gone {
				if got := a.absent[tickID{"each-01", second(n).Unix()}]; got != reason {
					t.Errorf("second %d: %q, want %q", n, got, reason)
				}
			}
		})
	}
}

// TestUnclaimedAtTheStop: the cursor proves that a tick is nobody's, but only the last two seconds
// may be left so.
func TestUnclaimedAtTheStop(t *testing.T) {
	for cursor, want := range map[int][]int{10: nil, 9: {9}, 8: {8, 9}, 5: {8, 9}} {
		b := goodBooks()
		b.Cursor = map[string]time.Time{"each-01": second(cursor), "slow": second(20)}
		a := b.judge(twoJobs(), rules{stop: second(9).Add(700 * time.Millisecond)})
		if len(a.absent) != len(want) || len(a.violations) > 0 {
			t.Errorf("cursor at %d: %v %v", cursor, a.absent, a.violations)
		}
		for _, n := range want {
			if a.absent[tickID{"each-01", second(n).Unix()}] != unclaimed {
				t.Errorf("cursor at %d: second %d is not there: %v", cursor, n, a.absent)
			}
		}
	}
}

// TestStillOpen: who ended in peace has settled its runs. Only a node that was struck, and a Redis that forgets, may leave one.
func TestStillOpen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		open  ledger.Lease
		rules rules
		want  int
	}{
		{"a run of a node that ended in peace", ledger.Lease{Run: "e9", Job: "each-01", Token: 10, NodeName: "n1"}, rules{struck: map[string]bool{"n2": true}}, 1},
		{"an open tick of shards", ledger.Lease{Run: "w9", Job: "each-01", Whole: true, Left: 1}, rules{}, 1},
		{"of a node that was struck", ledger.Lease{Run: "e9", Job: "each-01", Token: 10, NodeName: "n2"}, rules{struck: map[string]bool{"n2": true}}, 0},
		{"forgotten", ledger.Lease{Run: "e9", Job: "each-01", Token: 10, NodeName: "n1"}, rules{lossy: window{second(8), second(9)}}, 0},
		{"granted to nobody: what is missing at the sink tells of it", ledger.Lease{Run: "e9", Job: "each-01"}, rules{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := goodBooks()
			tt.open.Tick = second(9).UnixMilli()
			b.Open = []ledger.Lease{tt.open}
			if a := b.judge(twoJobs(), tt.rules); len(a.violations) != tt.want {
				t.Errorf("want %d violations, got %v", tt.want, a.violations)
			}
		})
	}
}

// A sharded tick that came due after the stop was opened by a node that drained, and its parts wait: nobody had to run it, as of a tick that
// is not split.
func TestOpenTickAfterTheStop(t *testing.T) {
	at := second(10).UnixMilli()
	b := goodBooks()
	b.Open = []ledger.Lease{
		{Run: "w10", Job: "each-01", Tick: at, Whole: true, Shards: 2, Left: 2},
		{Run: "w10.0", Job: "each-01", Tick: at, Of: "w10", Shard: 0, Shards: 2},
		{Run: "w10.1", Job: "each-01", Tick: at, Of: "w10", Shard: 1, Shards: 2},
	}
	if a := b.judge(twoJobs(), rules{stop: second(9).Add(700 * time.Millisecond)}); len(a.violations) != 0 {
		t.Error(a.violations)
	}
}

func TestJudgeTellsABrokenChain(t *testing.T) {
	b := goodBooks()
	b.Chain = []string{"slow: gap"}
	if a := b.judge(twoJobs(), rules{}); len(a.violations) != 1 {
		t.Errorf("%v", a.violations)
	}
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(b *books, lines []line) []line
		want  int
	}{
		{"both agree", func(_ *books, ls []line) []line { return ls }, 0},
		{"in flight counts", func(b *books, ls []line) []line {
			r := b.Rows["each-01"][9]
			b.Rows["each-01"] = b.Rows["each-01"][:9]
			b.Open = []ledger.Lease{{Run: r.Run, Job: r.Job, Tick: r.Tick, Token: r.Token, NodeName: r.NodeName}}
			return ls
		}, 0},
		{"a line without a record", func(b *books, ls []line) []line {
			b.Rows["each-01"] = b.Rows["each-01"][1:]
			return ls
		}, 1},
		{"another token", func(b *books, ls []line) []line {
			b.Rows["each-01"][3].Token++
			return ls
		}, 1},
		{"another node", func(b *books, ls []line) []line {
			b.Rows["each-01"][3].NodeName = "n9"
			return ls
		}, 1},
		{"another tick", func(b *books, ls []line) []line {
			b.Rows["each-01"][3].Tick += time.Second.Milliseconds()
			return ls
		}, 1},
		{"a success without a line", func(_ *books, ls []line) []line {
			return slices.DeleteFunc(ls, func(l line) bool { return l.run == "e3" })
		}, 1},
		{"a success without an end", func(_ *books, ls []line) []line {
			return slices.DeleteFunc(ls, func(l line) bool { return l.run == "s4" && l.phase == phaseEnd })
		}, 1},
		{"an abandoned run without a line", func(b *books, ls []line) []line {
			b.Rows["each-01"][3].Outcome = jobs.OutcomeAbandoned
			return slices.DeleteFunc(ls, func(l line) bool { return l.run == "e3" })
		}, 0},
		{"a run that wrote twice", func(_ *books, ls []line) []line { return append(ls, ls[0]) }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := goodBooks()
			if got := b.compare(twoJobs(), tt.spoil(&b, goodLines()), window{}).violations; len(got) != tt.want {
				t.Errorf("want %d violations, got %v", tt.want, got)
			}
		})
	}
}
