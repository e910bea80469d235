//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// epoch is the first second of the tests' window.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// ended is a node that has been there and ended in peace.
func ended(name string) *node {
	n := &node{name: name, exited: make(chan struct{}), ended: second(13)}
	close(n.exited)
	return n
}

// goodStage is a scenario of twelve seconds without a fault: the writes of three nodes, read from
// the sink's file, and the ledger's records.
func goodStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		settings: settings{jobs: append(everySecond(1), slow("slow-1")), ttl: 3 * time.Second}, dir: t.TempDir(), say: func(string, ...any) {},
		nodes: []*node{ended("n1"), ended("n2"), ended("n3")}, begun: second(-1), from: second(0),
		asked: second(12).Add(700 * time.Millisecond), ended: second(13), books: books{},
	}
	var sink strings.Builder
	write := func(l line, phase judge.Phase, after time.Duration) {
		fmt.Fprintf(&sink, "%s %s %d %s %s %s %d\n", l.job, l.tick.Format(time.RFC3339), l.token, l.node, l.run, phase, l.tick.Add(after).UnixNano())
	}
	var going line // the last run of slow-1
	for n := range 13 {
		if n%3 == 1 {
			write(going, judge.End, 1220*time.Millisecond)
		}
		each := line{job: "each-01", tick: second(n), token: int64(1000 + 2*n), node: fmt.Sprint("n", n%3+1), run: fmt.Sprint("each-01-", n)}
		write(each, judge.Start, 20*time.Millisecond)
		s.record(each, second(n+1), 50*time.Millisecond)
		if n%3 == 0 {
			going = line{job: "slow-1", tick: second(n), token: int64(1001 + 2*n), node: "n2", run: fmt.Sprint("slow-1-", n)}
			write(going, judge.Start, 20*time.Millisecond)
			s.record(going, second(n+3), 1250*time.Millisecond)
		}
	}
	write(going, judge.End, 1220*time.Millisecond)
	if err := os.WriteFile(s.sink(), []byte(sink.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var bad []judge.Finding
	var err error
	if s.lines, bad, err = readSink(s.sink()); err != nil || len(bad) > 0 {
		t.Fatalf("%v, %v", bad, err)
	}
	return s
}

// record adds to the books a run that succeeded `after` its tick.
func (s *stage) record(l line, next time.Time, after time.Duration) {
	b, at := s.books[l.job], l.tick.UnixMilli()
	if b.Entry.Job == "" {
		b.Definition, b.Complete = s.jobs[slices.IndexFunc(s.jobs, func(j job) bool { return j.name == l.job })].definition(s.ttl), true
		b.Entry = judge.Entry{Job: l.job, Base: at, Digest: b.Definition.Digest(), Counts: map[jobs.Outcome]int64{}}
	}
	b.Rows = append(b.Rows, judge.Row{
		Job: l.job, Prev: at, Next: next.UnixMilli(), At: l.tick.Add(after).UnixMilli(), Tick: at, Outcome: jobs.OutcomeSucceeded,
		Attempt: 1, Tries: 1, Run: l.run, Token: l.token, Node: "id-" + l.node, NodeName: l.node, Trigger: "schedule", Started: at + 10,
	})
	b.Entry.Cursor, b.Entry.Last, b.Entry.Token = next.UnixMilli(), at, l.token
	b.Entry.Counts[jobs.OutcomeSucceeded]++
	s.books[l.job] = b
}

// judged returns the judge's report on a stage's evidence.
func judged(t *testing.T, s *stage) judge.Report {
	t.Helper()
	c, err := s.evidence()
	if err != nil {
		t.Fatal(err)
	}
	return judge.Check(c)
}

func kinds(list []judge.Finding) []judge.Kind {
	var all []judge.Kind
	for _, f := range list {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestGood: where all was well nothing is found.
func TestGood(t *testing.T) {
	if r := judged(t, goodStage(t)); len(r.Findings) > 0 || r.Ticks != 18 || r.Verdicts[judge.Satisfied] != 18 {
		t.Errorf("%+v", r)
	}
}

// TestDisturbances: a scenario's faults excuse their consequences, there and nowhere else.
func TestDisturbances(t *testing.T) {
	abandon := func(s *stage) {
		row := &s.books["each-01"].Rows[4] // of n2
		row.Outcome, row.At = jobs.OutcomeAbandoned, second(5).UnixMilli()
		s.books["each-01"].Entry.Counts[jobs.OutcomeAbandoned]++
	}
	twice := func(s *stage) {
		i := slices.IndexFunc(s.lines, func(l line) bool { return l.run == "each-01-4" })
		again := s.lines[i]
		again.run, again.node, again.token = "again", "n3", 1009 // no other run has that
		s.lines = slices.Insert(s.lines, i+1, again)
		for j := range s.lines {
			s.lines[j].no = j + 1
		}
	}
	late := func(s *stage) {
		i := slices.IndexFunc(s.lines, func(l line) bool { return l.run == "each-01-4" })
		s.lines[i].at = second(8)
	}
	loses := func(at time.Time) func(s *stage) {
		return func(s *stage) {
			s.ttl = -recovery + time.Second // so that its effects last for a second
			s.faults = []judge.Disturbance{{Span: judge.Span{From: at, Until: at.Add(time.Second)}, Lossy: true, Loses: true}}
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(s *stage)
		did   func(s *stage)
		want  []judge.Kind
	}{
		{"abandoned, and nothing was wrong", abandon, func(*stage) {}, []judge.Kind{judge.KindUntrue}},
		{"abandoned, and its node was killed", abandon, func(s *stage) { s.nodes[1].killed = second(4) }, nil},
		{"abandoned, and another node was killed", abandon, func(s *stage) { s.nodes[2].killed = second(4) }, []judge.Kind{judge.KindUntrue}},
		{"abandoned, and its node was frozen", abandon, func(s *stage) { s.nodes[1].frozen = judge.Span{From: second(4), Until: second(6)} }, nil},
		{"late, and nothing was wrong", late, func(*stage) {}, []judge.Kind{judge.KindLate}},
		{"late, and a node was told to leave", late, func(s *stage) { s.nodes[0].left = second(4) }, []judge.Kind{judge.KindLate}},
		{"late, and Redis was away", late, func(s *stage) { s.faults = []judge.Disturbance{{Span: judge.Span{From: second(4), Until: second(7)}}} }, nil},
		{"ran twice near lost writes", twice, loses(second(4)), nil},
		{"ran twice far from lost writes", twice, loses(second(9)), []judge.Kind{judge.KindDouble}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := goodStage(t)
			tt.spoil(s)
			tt.did(s)
			if r := judged(t, s); !slices.Equal(kinds(r.Findings), tt.want) {
				t.Errorf("want %v, got %v", tt.want, r.Findings)
			}
		})
	}
}

// TestStaleLines: a line of an abandoned run after a newer token is stale; such a line of another
// run is a violation.
func TestStaleLines(t *testing.T) {
	lines := []line{{no: 1, job: "j", run: "a", token: 1}, {no: 2, job: "j", run: "b", token: 2}, {no: 3, job: "j", run: "a", token: 1}}
	for _, abandoned := range []bool{true, false} {
		if got := writes(lines, map[string]bool{"a": abandoned}); got[2].Refused != abandoned || got[0].Refused || got[1].Refused {
			t.Errorf("abandoned %v: %+v", abandoned, got)
		}
	}
}
