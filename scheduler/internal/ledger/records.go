package ledger

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// The records' layouts stand in scripts/prelude.lua, which writes them; here they are read.

// Entry is what the ledger keeps of one job.
type Entry struct {
	Job      string
	Cursor   int64 // earliest tick not accounted for, ms; 0 when the schedule has no more
	Digest   string
	Revision string
	Token    locking.Token // the last one granted; 0 when none was
	Open     string        // id of the run that holds the job, leased or pending
	Base     int64         // where the recorded chain begins, ms
	Last     int64         // latest instant ever accounted for, ms; 0 for none
	// Pause holds the ticks that are recorded as paused. It stays until the cursor is behind it.
	Pause Window
	// Busy is from the grant to the end of the last run of a job with overlap queue or replace.
	Busy Window
	// Ticks before Again may have run before an operator set the cursor back; granted anew, they
	// are attempt AgainAttempt.
	Again        int64
	AgainAttempt int
	Counts       map[jobs.Outcome]int64 // of ticks and runs that ended so, since the job was first registered
	// Retold is the latest tick of which a shard, or an attempt after the first, was lost in a failover and restored by its
	// node: of ticks up to it the history may not show all attempts, or not in their order. 0 for none.
	Retold int64
}

// Lease is one granted run that nobody settled yet, or, with a Token of 0, a pending one.
type Lease struct {
	Run, Job       string
	Tick           int64
	Shard, Shards  int
	Attempt        int
	Token          locking.Token
	Node, NodeName string
	Until, TTL     int64 // ms
	Beat           int64
	Prev, Next     int64 // the chain's link that this run fills; 0 for none
	Trigger        string
	Request        string // the run id that a person asked for, when this is another one
	Granted        int64  // ms; for a pending run, when it may start
	Overlap        string // s, q, r or a: the job's policy when it was granted
	Attempts       int    // how often the tick may be granted before a crash ends it
	Holds          bool   // pending: the job is held for it, because it was granted before
	Of             string // the open tick that this is a shard of; "" for what holds the job by itself
	Param          string // the shard's parameter
	Payload        []byte
	// Whole says that this is an open tick of a sharded job: no run, but what its shards are parts of. Left is how
	// many of them have not ended for good.
	Whole bool
	Left  int
}

// Pending says that nobody was granted this run yet.
func (l Lease) Pending() bool { return l.Token == 0 && !l.Whole }

// Row is one record of history: a run that ended, or a range of ticks that did not run.
type Row struct {
	Job        string
	Prev, Next int64 // cursor before and after the step; 0 for none
	At         int64 // when it was recorded or ended, ms
	Tick       int64
	Outcome    jobs.Outcome
	Reason     string
	// Of a range: its last tick and the number of ticks. Count is 0 for a run.
	Until, Count int64
	Ranged       bool
	// Note belongs to the reason of a range: the schedule that was replaced, or the outcome of the
	// upstream's tick.
	Note string

	Shard, Shards, Attempt, Tries int
	Highest                       int // of a sharded tick: the highest attempt of a shard
	Run                           string
	Token                         locking.Token
	Node, NodeName                string
	Trigger, Request              string
	Of, Param                     string // of a shard: its tick's id, and its parameter
	Whole                         bool   // a sharded tick, with the worst of its shards' outcomes; no run
	Started                       int64
	Late                          string // a report that came after the outcome: "succeeded 1763726400123"
	Error                         string
}

// fields reads the separated fields of a record one after another and remembers the first that
// is not what it should be.
type fields struct {
	rest []string
	bad  error
}

func split(record string, n int) (*fields, error) {
	parts := strings.SplitN(record, "|", n+1)
	if parts[0] != "1" || len(parts) != n+1 {
		return nil, fmt.Errorf("%w: %.40q", ErrForeign, record)
	}
	return &fields{rest: parts[1:]}, nil
}

func (f *fields) text() string {
	s := f.rest[0]
	f.rest = f.rest[1:]
	return s
}

// int reads a number; an absent one is 0.
func (f *fields) int() int64 {
	s := f.text()
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && f.bad == nil {
		f.bad = fmt.Errorf("%w: %q where a number belongs", ErrForeign, s)
	}
	return n
}

// param reads a shard's parameter, which is stored escaped.
func (f *fields) param() string {
	s, err := url.QueryUnescape(f.text())
	if err != nil && f.bad == nil {
		f.bad = fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return s
}

func parseEntry(job, record string) (Entry, error) {
	f, err := split(record, 12)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Job: job, Cursor: f.int(), Digest: f.text(), Revision: f.text(), Token: f.int()}
	f.text() // the server's id, for the token rule alone
	e.Open, e.Base, e.Last, e.Pause, e.Busy = f.text(), f.int(), f.int(), windowOf(f.text()), windowOf(f.text())
	again := windowOf(f.text())
	e.Again, e.AgainAttempt = again.From, int(again.To)
	e.Counts, e.Retold = countsOf(f.text())
	return e, f.bad
}

// windowOf reads 'from,to'; what is none is the zero window.
func windowOf(s string) Window {
	from, to, _ := strings.Cut(s, ",")
	return Window{number(from), number(to)}
}

// countsOf reads 'succeeded=12,missed=3', and the tick that stands among them. Words that this version does not know are
// left out.
func countsOf(s string) (counts map[jobs.Outcome]int64, retold int64) {
	counts = make(map[jobs.Outcome]int64)
	for part := range strings.SplitSeq(s, ",") {
		word, n, _ := strings.Cut(part, "=")
		var o jobs.Outcome
		if o.UnmarshalText([]byte(word)) == nil {
			counts[o] = number(n)
		} else if word == "retold" {
			retold = number(n)
		}
	}
	return counts, retold
}

func parseLease(run, record string) (Lease, error) {
	f, err := split(record, 21)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{Run: run, Until: f.int(), Beat: f.int(), Job: f.text(), Tick: f.int(), Shard: int(f.int()),
		Shards: int(f.int()), Attempt: int(f.int()), Token: f.int(), Node: f.text(), NodeName: f.text(),
		TTL: f.int(), Prev: f.int(), Next: f.int(), Trigger: f.text(), Request: f.text(), Granted: f.int(),
		Overlap: f.text(), Attempts: int(f.int()), Of: f.text(), Param: f.param()}
	l.Payload = []byte(f.text())
	return l, f.bad
}

// parsePending reads what lies in waiting: a pending run, or an open tick.
func parsePending(run, record string) (Lease, error) {
	if rest, whole := strings.CutPrefix(record, "1T|"); whole {
		return parseOpen(run, rest)
	}
	f, err := split(record, 14)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{Run: run, Job: f.text(), Tick: f.int(), Shard: int(f.int()), Shards: int(f.int()), Attempt: int(f.int()),
		Prev: f.int(), Next: f.int(), Trigger: f.text(), Request: f.text(), Granted: f.int(), Holds: f.text() != "", Of: f.text(), Param: f.param()}
	l.Payload = []byte(f.text())
	return l, f.bad
}

func parseOpen(id, rest string) (Lease, error) {
	f, err := split("1|"+rest, 15)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{Run: id, Whole: true, Job: f.text(), Tick: f.int(), Shards: int(f.int()), Left: int(f.int())}
	f.int() // how many did not succeed
	f.text()
	l.Attempt = int(f.int())
	f.int() // the highest attempt of its shards
	l.Prev, l.Next, l.Trigger, l.Request = f.int(), f.int(), f.text(), f.text()
	l.Granted, l.Overlap, l.Payload = f.int(), f.text(), []byte(f.text())
	return l, f.bad
}

func parseRow(job, record string) (Row, error) {
	if strings.HasPrefix(record, "1|S|") {
		return parseRange(job, record)
	}
	f, err := split(record, 22)
	if err != nil {
		return Row{}, fmt.Errorf("%w: row %.40q", ErrForeign, record)
	}
	kind := f.text()
	if kind != "R" && kind != "T" {
		return Row{}, fmt.Errorf("%w: row %.40q", ErrForeign, record)
	}
	r := Row{Job: job, Whole: kind == "T", Prev: f.int(), Next: f.int(), At: f.int(), Tick: f.int(), Shard: int(f.int()), Shards: int(f.int()),
		Attempt: int(f.int()), Tries: int(f.int()), Run: f.text(), Token: f.int(), Node: f.text(), NodeName: f.text(),
		Trigger: f.text(), Request: f.text(), Of: f.text(), Param: f.param()}
	if err := r.Outcome.UnmarshalText([]byte(f.text())); err != nil {
		return r, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	r.Reason, r.Started, r.Late, r.Error = f.text(), f.int(), f.text(), f.text()
	if r.Whole {
		r.Highest, r.Tries = r.Tries, 0
	}
	return r, f.bad
}

func parseRange(job, record string) (Row, error) {
	f, err := split(record, 10)
	if err != nil {
		return Row{}, err
	}
	f.text()
	r := Row{Job: job, Ranged: true, Prev: f.int(), Next: f.int(), At: f.int(), Tick: f.int(), Until: f.int(), Count: f.int()}
	if err := r.Outcome.UnmarshalText([]byte(f.text())); err != nil {
		return r, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	r.Reason, r.Note = f.text(), f.text()
	return r, f.bad
}
