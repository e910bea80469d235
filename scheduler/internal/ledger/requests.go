package ledger

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
)

// Event is the end of a tick, or of several ticks in a row, of an upstream job. It stays in the
// outbox of the job's partition until it is delivered to every follower.
type Event struct {
	Upstream    string
	Prev, Next  int64 // the step of the upstream's cursor; 0 for none
	Tick, Until int64 // first and last tick, ms
	Count       int64
	Outcome     jobs.Outcome
	At          int64  // when it was known, ms
	Result      []byte // of a success: JSON for the followers
	Followers   []string
	// Holders are the digests of the follower's definitions that living nodes hold; nil is unknown.
	// If the stored definition is not among them, no node can run the follower, and Relay answers a
	// success with Unheld.
	Holders []string
	// Unheld: a success has waited long enough, so a follower that no node can run is recorded as
	// missed. Without Holders no node can.
	Unheld bool
	// Rest makes Relay record these ticks as skipped. The upstream did not run them, and followers
	// get no run for each of them. Gaps are the ticks without a row of the follower; nil when the
	// caller has not looked.
	Rest   bool
	Gaps   []Gap
	record string
}

// Gap is ticks in a row, ms. Next is the tick after them; 0 when there is none.
type Gap struct {
	First int64 `json:"first,string"`
	Last  int64 `json:"last,string"`
	Next  int64 `json:"next,string,omitempty"`
	Count int64 `json:"count"`
}

// JoinState notes how the upstreams of one follower ended a tick.
type JoinState struct {
	at          int64 // when the first of them had ended it, ms
	state, ends string
}

// ParseEvent reads an outbox row.
func ParseEvent(record string) (Event, error) {
	e := Event{record: record}
	read := e.ReadEvent
	if strings.HasPrefix(record, "2|") {
		read = e.ReadSuccess
	}
	return e, read(record)
}

// Record is the event's row in the outbox: no two that are there at once have the same.
func (e Event) Record() string { return e.record }

// Cancel is a request that a run ends. Without an author, a newer tick replaces the run.
type Cancel struct {
	Run, Author, Reason string
}

// Pause is the author, reason and end of a job's pause.
type Pause struct {
	Since          int64 // ms
	Until          int64 // ms; 0: until it is resumed
	Author, Reason string
}

// Progress is a run's progress, as its function reported it.
type Progress struct {
	At          int64 // of the report, ms
	Done, Total int64 // steps; a total of 0 is not known
	Since, From int64 // the time of the first report, ms, and how many steps were done then
	Note        string
}

// Text is the progress as it is stored.
func (r Progress) Text() string { return r.text() }

// Wait is the reason why a granted run waits before it starts.
type Wait struct {
	At      int64  // since when, ms; of a run that waits no more, when that ended
	Refused bool   // the store of the lock refuses or does not answer; else another holder has the lock
	Note    string // in words; "": the run waits no more
}

// Text is the wait as it is stored. A bar would end the note of a row.
func (r Wait) Text() string {
	r.Note = strings.ReplaceAll(r.Note, "|", "/")
	return r.text()
}

// Backfill is the ticks of a range that a job runs beside its schedule. A job has one under way at
// most. Its runs are ruled by Parallel: they do not hold the job, and nothing that holds the job
// holds them. Instants are ms.
type Backfill struct {
	ID, Job, State string
	From, To       int64 // the range; both ends belong to it
	Next           int64 // no tick from here on has a run yet; 0 when all have
	Parallel       int
	Total          int64                  // ticks in the range when it began
	Counts         map[jobs.Outcome]int64 // ticks that have ended
	Going          []BackfillRun          // ticks whose runs have not ended
	Began, Looked  int64                  // the time of the request, and of its last step by a node
	Ended          int64                  // 0 before
	Author         string
	By, Reason     string // who cancelled it, and why
	Record         string
}

// BackfillRun is a tick of a backfill, ms, and the id of the run that it has now.
type BackfillRun struct {
	Tick int64
	Run  string
}

// RunID is the id of the first run of a tick.
func (b Backfill) RunID(tick int64) string { return b.ID + "-" + Spell(tick) }

// Tally is how many of its ticks have ended, and how: "succeeded 998, failed 2".
func (b Backfill) Tally() string {
	var words []string
	for o := jobs.OutcomeSucceeded; o <= jobs.OutcomeSuperseded; o++ {
		if n := b.Counts[o]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", o, n))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "no tick has run")
}

// ParseBackfill reads a record of a backfill.
func ParseBackfill(record string) (Backfill, error) {
	b := Backfill{Record: record}
	err := b.ReadBackfill(record)
	b.Parallel = min(max(b.Parallel, 1), BackfillParallel)
	switch {
	case b.State != backfillRestored:
	case b.Ended != 0: // by a node that did not know the state
		b.State = BackfillDone
	default:
		b.State = BackfillGoing
	}
	return b, err
}

// backfillRestored is the stored state of a backfill that a node has stored again, until it is next
// fed: then runs that Redis has lost, and no node was granted, are put into pending again.
const backfillRestored = "restored"

// BackfillParallel is the most runs of a backfill that may wait or go at a time.
const BackfillParallel = 100

// The states of a backfill.
const (
	BackfillGoing     = "going"
	BackfillCancelled = "cancelled" // also while runs of it have not ended
	BackfillDone      = "done"
)

// ByJob orders backfills by their jobs.
func ByJob(a, b Backfill) int { return cmp.Compare(a.Job, b.Job) }

// Run is the id of the run that an event leads to, one for each tick of an upstream; of a follower
// of several, upstream is "".
func (e Event) Run(job, upstream string) string {
	name := job + "\n" + upstream + "\n" + strconv.FormatInt(e.Tick, 10)
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}
