package ledger

import (
	"fmt"

	"github.com/escapement/escapement/jobs"
)

// The promises of docs/guarantees.md that the books can show to be broken, and Books, for books that
// contradict themselves or cannot be checked.
const (
	P1    = "P1" // a tick is granted to one node
	P2    = "P2" // each tick has one recorded answer
	P3    = "P3" // tokens of a job grow
	Books = "books"
)

// Violation is one thing that is wrong with a job's books.
type Violation struct {
	Job     string `json:"job"`
	Promise string `json:"promise"` // P1, P2, P3 or Books
	What    string `json:"what"`
	// Evidence are the records concerned, spelt out.
	Evidence []string `json:"evidence"`
	at       int64    // the latest instant concerned, ms; 0: of no instant
}

// skewMost is the largest max_skew that a node can be set to, in ms: so far may a node's idea of
// Redis' time, which some records carry, be from what Redis wrote beside it.
const skewMost = 60_000

// audit is the check of one job's books.
type audit struct {
	entry    Entry
	def      jobs.Definition // V is 0 when it could not be read
	rows     []Row
	open     []Lease // of this job
	steps    []step
	grants   []grant
	opened   map[string]int // sharded ticks by id: as which attempt they were opened
	schedule *jobs.Schedule // of def
	cut      bool           // rows have left the history
	ticks    int64          // that were recomputed
	found    []Violation
	// hinging are those of found that hinge on every record being there, and not only on those read.
	hinging int
}

// Audit checks one job's books against the promises and returns what is wrong with them: the chain
// must close and each step of it be what the schedule in force demands (P2), no tick may have been
// granted twice or both have run and not (P1), tokens must grow (P3). The rows are in the order of
// the history; open holds the runs in flight and the pending ones. A zero def is one that could not
// be read: then only what needs no schedule is checked.
func Audit(e Entry, def jobs.Definition, rows []Row, open []Lease) []Violation {
	a := newAudit(e, def, rows, open)
	a.all()
	return a.found
}

func newAudit(e Entry, def jobs.Definition, rows []Row, open []Lease) *audit {
	a := &audit{entry: e, def: def, rows: rows}
	for _, l := range open {
		if l.Job == e.Job {
			a.open = append(a.open, l)
		}
	}
	a.steps = stepsOf(e, rows, a.open)
	a.grants = grantsOf(rows, a.open)
	a.opened = openedOf(rows, a.open)
	a.cut = a.outnumbered()
	return a
}

func (a *audit) all() {
	if a.def.After == "" { // of a job that follows another, the steps are the other one's
		a.closes()
		a.recompute()
		a.rising()
	}
	a.contradictions()
	a.attempts()
	a.shards()
	a.hinging = len(a.found)
	a.doubles()
	a.tokens()
	a.counts()
	if a.def.V != 0 && a.def.Digest() != a.entry.Digest {
		a.add(Books, 0, []shower{a.cursor()}, "the definition stored is %s, and the entry was made for %s", a.def.Digest(), a.entry.Digest)
	}
}

func (a *audit) add(promise string, at int64, evidence []shower, format string, args ...any) {
	v := Violation{Job: a.entry.Job, Promise: promise, What: fmt.Sprintf(format, args...), at: at}
	for _, e := range evidence {
		v.Evidence = append(v.Evidence, e.show())
	}
	a.found = append(a.found, v)
}

// retold says that a failover has lost attempts or shards of a tick, or of a later one, and that their nodes told of them
// again: ends of attempts may stand behind the attempts that followed, and some may never have been told.
func (a *audit) retold(tick int64) bool { return a.entry.Retold != 0 && tick <= a.entry.Retold }

// numbers counts what the rows say of each outcome.
func (a *audit) numbers() map[jobs.Outcome]int64 {
	sum := make(map[jobs.Outcome]int64)
	for _, r := range a.rows {
		switch {
		case r.Ranged:
			sum[r.Outcome] += r.Count
		case !r.Whole: // its shards were counted
			sum[r.Outcome]++
		}
	}
	return sum
}

// outnumbered says whether more was counted than the rows show, because old ones have left.
func (a *audit) outnumbered() bool {
	sum := a.numbers()
	for o, n := range a.entry.Counts {
		if n > sum[o] {
			return true
		}
	}
	return false
}

// counts checks that the job's counters have seen every row there is.
func (a *audit) counts() {
	sum := a.numbers()
	for o := jobs.OutcomeRunning; o <= jobs.OutcomeSuperseded; o++ {
		if n := a.entry.Counts[o]; sum[o] > n {
			a.add(Books, 0, []shower{a.cursor()}, "the history has %d %s, and only %d were counted", sum[o], o, n)
		}
	}
}
