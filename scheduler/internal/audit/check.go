package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Check compares all evidence of a case. The same case always gives the same report.
func Check(c Case) Report {
	c = c.withDefaults()
	r := &Report{Verdicts: make(map[Verdict]int)}
	writes := slices.Clone(c.Writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.No, b.No) })
	lines := make(map[string][]Write, len(c.Jobs))
	for _, w := range writes {
		lines[w.Job] = append(lines[w.Job], w)
	}
	trials := make(map[string]*trial, len(c.Jobs))
	for _, j := range upstreamsFirst(c.Jobs) {
		var ups []*trial
		for _, name := range j.upstreams() {
			if up := trials[name]; up != nil {
				ups = append(ups, up)
			}
		}
		t := newTrial(&c, j, r, lines[j.Name], ups)
		trials[j.Name] = t
	}
	for _, j := range c.Jobs {
		trials[j.Name].judge()
		delete(lines, j.Name)
	}
	r.unknownJobs(&c, lines)
	return *r
}

// upstreamsFirst orders jobs so that a follower comes after its upstreams.
func upstreamsFirst(list []Job) []Job {
	var ordered []Job
	placed := make(map[string]bool)
	for len(ordered) < len(list) {
		before := len(ordered)
		for _, j := range list {
			if !placed[j.Name] && !slices.ContainsFunc(j.upstreams(), func(name string) bool { return !placed[name] }) {
				ordered, placed[j.Name] = append(ordered, j), true
			}
		}
		if len(ordered) == before { // follows a job that is not in the case: judged by itself
			for _, j := range list {
				if !placed[j.Name] {
					ordered, placed[j.Name] = append(ordered, j), true
				}
			}
		}
	}
	return ordered
}

// unknownJobs reports lines and records of jobs that are not in the case.
func (r *Report) unknownJobs(c *Case, lines map[string][]Write) {
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, w := range lines[name] {
			r.Findings = append(r.Findings, NewFinding(KindPhantom, name, w.Tick, "no such job: %s", w))
		}
	}
	known := make(map[string]bool, len(c.Jobs))
	for _, j := range c.Jobs {
		known[j.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Books)) {
		if b := c.Books[name]; !known[name] && len(b.Rows)+len(b.Open) > 0 {
			r.Findings = append(r.Findings, NewFinding(KindBooks, name, time.Time{}, "no such job, and %d rows and %d runs in flight of it", len(b.Rows), len(b.Open)))
		}
	}
}

// trial is the judgement of one job, with its evidence.
type trial struct {
	*Case
	job    Job
	report *Report
	books  query.JobSnapshot
	check  *bookCheck
	ups    []*trial // of the job's upstreams

	lines  []Write // in order of writing
	runs   []*run  // with at least one line, by their first line
	of     []*run  // the run of each line
	byID   map[string]*run
	byHand map[string]bool // ids of runs that a person requested, and of runs that may have resulted from them
	reran  map[string]bool // the same for attempts that an operator requested
	ranges []covered
	// First grant of each run whose grant was observed.
	firstGrants map[string]time.Time

	asks   [][]int64 // by version: its ticks, ms
	due    []*tick   // in order
	byTick map[int64]*tick
	busy   []Span // when runs were going: disjoint, in order
}

// run is the evidence of one run from writes and books.
type run struct {
	id      string
	starts  []Write // of each try
	ends    []Write // of each try that ended
	going   bool    // a try has started and not ended
	refused bool    // a line of it was refused
	row     *ledger.Row
	at      int // index of its row; -1: none
	lease   *ledger.Run
}

// covered is a row of ticks that did not run.
type covered struct {
	row   *ledger.Row
	at    int // index of the row
	ticks []*tick
}

// tick is a due or possibly due tick with all evidence about it.
type tick struct {
	at       time.Time // its instant
	ready    time.Time // its earliest start: its instant, or the end of its upstream's tick
	soonest  time.Time // ready or before: a row of several ticks has only the time when the last of them was recorded
	must     bool
	deadline time.Time // latest start if undisturbed
	excused  bool      // disturbed: a late start is no finding
	turn     time.Time // when it was next in the queue: late ticks run in their order
	starts   []Write   // the first of each run
	rows     []*ledger.Row
	ranges   []*ledger.Row
	leases   []*ledger.Run
	wholes   []*ledger.Row // as a sharded tick; rows and leases are then its shards'
	opened   []*ledger.Run // the same, not closed
}

func newTrial(all *Case, j Job, r *Report, lines []Write, ups []*trial) *trial {
	c := *all
	c.Disturbed = slices.DeleteFunc(slices.Clone(c.Disturbed), func(d Disturbance) bool { return d.Job != "" && d.Job != j.Name })
	t := &trial{Case: &c, job: j, report: r, books: c.Books[j.Name], ups: ups, lines: lines,
		byID: make(map[string]*run, len(lines)/2), byHand: make(map[string]bool), reran: make(map[string]bool), byTick: make(map[int64]*tick)}
	t.check, t.firstGrants = newBookCheck(t.books), make(map[string]time.Time)
	for _, g := range c.Grants {
		if _, seen := t.firstGrants[g.Run]; g.Job == j.Name && !seen {
			t.firstGrants[g.Run] = g.At
		}
	}
	t.readRequests()
	t.readRecords()
	t.readWrites()
	t.schedule()
	t.place()
	return t
}

// judge makes all checks of one job.
func (t *trial) judge() {
	t.busy = t.occupied(nil)
	var before *tick
	for _, d := range t.due {
		d.deadline = t.deadline(d.ready, t.busyBut(d))
		d.excused, d.turn = t.heldUp(d, before), d.ready
		if before != nil {
			d.turn = latest(d.turn, before.accountedAt(t.Read))
		}
		before = d
	}
	t.tries()
	t.accounted()
	t.reasons()
	t.policies()
	t.tokens()
	t.overlaps()
	t.mixed()
	t.granted()
	t.compare()
	t.check.all()
	for _, f := range t.check.found {
		f.Kind = KindBooks
		t.report.Findings = append(t.report.Findings, f)
	}
}

// add records a finding, or an excuse where Redis may have lost the record that would have
// prevented it.
func (t *trial) add(kind Kind, at time.Time, format string, args ...any) {
	switch kind {
	case KindDouble, KindLost, KindBooks, KindContradiction, KindOverlap, KindMixed, KindUnwanted:
		again := kind == KindDouble || kind == KindContradiction
		// Nodes learn of a follower's tick only by delivery, and an emptied Redis must first have
		// the followers' registrations.
		known := (again || kind == KindLost && len(t.job.upstreams()) == 0) && t.remembered(at, again)
		if t.lossNear(at) && !known {
			t.report.Excused++
			return
		}
	default:
	}
	t.report.Findings = append(t.report.Findings, NewFinding(kind, t.job.Name, at, format, args...))
}

// upstreams returns the jobs that this job follows; none when it has a schedule.
func (j Job) upstreams() []string {
	if len(j.Versions) == 0 {
		return nil
	}
	return j.Versions[0].Definition.After
}

// any reports whether is holds for one of the job's definitions.
func (j Job) any(is func(jobs.Definition) bool) bool {
	return slices.ContainsFunc(j.Versions, func(v Version) bool { return is(v.Definition) })
}

// all reports whether is holds for every definition of the job.
func (j Job) all(is func(jobs.Definition) bool) bool {
	return !j.any(func(d jobs.Definition) bool { return !is(d) })
}

// most returns the greatest value of `of` over the job's definitions.
func (j Job) most(of func(jobs.Definition) int) int {
	most := 0
	for _, v := range j.Versions {
		most = max(most, of(v.Definition))
	}
	return most
}

func allows(d jobs.Definition) bool { return d.Overlap == jobs.OverlapAllow }

// allowed reports whether some definition of the job lets its runs overlap.
func (t *trial) allowed() bool { return t.job.any(allows) }

// trimmed reports whether the record of an instant may have left the history.
func (t *trial) trimmed(at time.Time) bool {
	if !t.check.cut {
		return false
	}
	from := t.books.Entry.Base
	if len(t.books.Rows) > 0 {
		from = max(from, t.books.Rows[0].At)
	}
	return at.UnixMilli() < from
}
