package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Check holds sink, books and schedules against each other. The same case always gives the same
// report.
func Check(c Case) Report {
	c = c.withDefaults()
	r := &Report{Verdicts: make(map[Verdict]int)}
	writes := slices.Clone(c.Writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.No, b.No) })
	lines := make(map[string][]Write, len(c.Jobs))
	for _, w := range writes {
		lines[w.Job] = append(lines[w.Job], w)
	}
	open := make(map[string][]ledger.Lease)
	for _, l := range c.Books.Open {
		open[l.Job] = append(open[l.Job], l)
	}
	for _, j := range c.Jobs {
		t := newTrial(&c, j, r, lines[j.Name], open[j.Name])
		t.identity()
		t.reasons()
		t.tokens()
		t.overlaps()
		t.compare()
		t.mixed()
		t.blind()
		delete(lines, j.Name)
		delete(open, j.Name)
	}
	r.strangers(&c, lines, open)
	for _, wrong := range c.Books.Chain {
		r.Findings = append(r.Findings, Finding{Kind: KindBooks, What: "the ledger's audit: " + wrong})
	}
	return *r
}

// strangers are lines and records of jobs that nobody configured.
func (r *Report) strangers(c *Case, lines map[string][]Write, open map[string][]ledger.Lease) {
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, w := range lines[name] {
			r.Findings = append(r.Findings, Finding{KindPhantom, name, w.Tick, "no such job: " + w.String()})
		}
	}
	known := make(map[string]bool, len(c.Jobs))
	for _, j := range c.Jobs {
		known[j.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Books.Rows)) {
		if rows := c.Books.Rows[name]; !known[name] && len(rows) > 0 {
			r.Findings = append(r.Findings, Finding{Kind: KindBooks, Job: name, What: fmt.Sprintf("no such job, and %d rows of it", len(rows))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		r.Findings = append(r.Findings, Finding{Kind: KindBooks, Job: name, What: fmt.Sprintf("no such job, and %d runs of it in flight", len(open[name]))})
	}
}

// trial is the judgement of one job: its evidence, put together.
type trial struct {
	*Case
	job    Job
	report *Report
	before int // findings and excuses in the report when the trial began

	lines  []Write // in order of writing
	rows   []ledger.Row
	open   []ledger.Lease
	runs   []*run // that the sink knows, by their first line
	byID   map[string]*run
	wholes map[string]ledger.Row   // closed ticks of a sharded job, by id
	opened map[string]ledger.Lease // and those that are open
	ranges []covered
	busy   []Span // when runs were going, apart from each other and in order

	asks   [][]int64 // by version: its ticks, ms
	due    []*tick   // in order
	byTick map[int64]*tick
	of     []*run // of each line
	faulty int    // starts that were found wrong by their identity, excused or not
	// Starts by hand of a run that had started before Redis lost its memory.
	regranted int
}

// run is what sink and books tell of one run.
type run struct {
	id      string
	seen    bool  // at the sink
	token   int64 // of its first line
	starts  []Write
	end     *Write
	refused bool // a line of it was refused
	row     *ledger.Row
	at      int // which row it is, from 0
	lease   *ledger.Lease
}

// covered is a row of ticks that did not run.
type covered struct {
	row   ledger.Row
	at    int // which row it is, from 0
	ticks []*tick
}

// tick is a due tick, or one that may have been due, and all that was found of it.
type tick struct {
	at       time.Time
	must     bool
	deadline time.Time // by when it must have started if undisturbed
	excused  bool      // it is disturbed: a late start is none
	starts   []Write   // by schedule
	rows     []ledger.Row
	ranges   []ledger.Row
	leases   []ledger.Lease
	wholes   []ledger.Row   // as a sharded tick; rows and leases are then its shards'
	opened   []ledger.Lease // the same, not closed
}

func newTrial(c *Case, j Job, r *Report, lines []Write, open []ledger.Lease) *trial {
	t := &trial{Case: c, job: j, report: r, before: len(r.Findings) + r.Excused, lines: lines, rows: c.Books.Rows[j.Name], open: open,
		byID: make(map[string]*run, len(lines)/2), wholes: make(map[string]ledger.Row), opened: make(map[string]ledger.Lease)}
	t.schedule()
	t.readRecords()
	t.readSink()
	t.busy = t.occupied(nil)
	var before *tick
	for _, d := range t.due {
		d.deadline = t.deadline(d.at, t.busyBut(d))
		d.excused = t.heldUp(d, before)
		before = d
	}
	return t
}

// add notes a finding, or an excuse where Redis may have lost what would have prevented it.
func (t *trial) add(kind Kind, at time.Time, format string, args ...any) {
	switch kind {
	case KindDouble, KindLost, KindBooks, KindContradiction, KindOverlap, KindMixed:
		if t.lossNear(at) {
			t.report.Excused++
			return
		}
	default:
	}
	t.report.Findings = append(t.report.Findings, Finding{kind, t.job.Name, at, fmt.Sprintf(format, args...)})
}

// clean says that nothing was found or excused of this job so far.
func (t *trial) clean() bool { return len(t.report.Findings)+t.report.Excused == t.before }
