package export

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Document holds everything stored of one job, in a form that does not depend on the number of
// partitions. Its JSON is a line of a backup. docs/storage.md describes the records in it.
type Document struct {
	// Job is the job's name. It is "" in a document of unique keys whose job is unknown.
	Job string `json:"job,omitempty"`
	// Entry is the job's entry, without the id of the server that gave the token: at another server
	// the first token leaps. It is "" for a job that is only announced, or that was removed while
	// its followers wait for its events.
	Entry Text `json:"entry,omitempty"`
	// Due: the job is due at its cursor.
	Due bool `json:"due,omitempty"`
	// Definitions are the current definition and the announced ones, by digest.
	Definitions map[string]Text `json:"definitions,omitempty"`
	// Held lists which nodes announced which definition.
	Held      []HeldDefinition `json:"held,omitempty"`
	Pause     Text             `json:"pause,omitempty"`
	Followers Text             `json:"followers,omitempty"`
	// Backfill is the backfill under way, Backfilled the last one to end.
	Backfill   Text `json:"backfill,omitempty"`
	Backfilled Text `json:"backfilled,omitempty"`
	// Running are the leases of runs in flight, Waiting pending runs and open ticks, Cancels their
	// cancel flags: by run id.
	Running map[string]Text    `json:"running,omitempty"`
	Waiting map[string]Waiting `json:"waiting,omitempty"`
	Cancels map[string]Text    `json:"cancels,omitempty"`
	// History is oldest first. Kept are outputs by run id, and payloads by "p:" and run id.
	History []Text          `json:"history,omitempty"`
	Kept    map[string]Text `json:"kept,omitempty"`
	// Unique has the time until which a repeated request or upstream event is not taken again, ms.
	Unique map[string]int64 `json:"unique,omitempty"`
	// Joins are the ends of the job's upstreams that the job has noted, by field.
	Joins map[string]Text `json:"joins,omitempty"`
	// Events are not yet delivered to followers.
	Events []Outgoing `json:"events,omitempty"`
	// Part is the partition that the document was read from, of a document without a job.
	Part int `json:"partition,omitempty"`
}

// HeldDefinition is a definition that nodes announced.
type HeldDefinition struct {
	Digest     string `json:"digest"`
	Generation string `json:"generation"`
	Revision   string `json:"revision"`
	Since      int64  `json:"since_ms"` // when it was first announced
	Seen       int64  `json:"seen_ms"`  // and last
}

// Waiting is a pending run, or the open tick of a sharded job, which has no Start.
type Waiting struct {
	Record Text   `json:"record"`
	Start  *int64 `json:"start_ms,omitempty"` // when it may be claimed
}

// Outgoing is an event for jobs that follow.
type Outgoing struct {
	Record Text  `json:"record"`
	Known  int64 `json:"known_ms"`
}

// Text is stored text. In JSON it is a string, or {"base64": ...} where the bytes are not UTF-8.
type Text string

// MarshalJSON keeps every byte.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(struct {
		Base64 []byte `json:"base64"`
	}{[]byte(t)})
}

// UnmarshalJSON reads MarshalJSON's form.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var bytes struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(b, &bytes)
		*t = Text(bytes.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// alone is the document without nodes' announcements.
func (d Document) alone() Document {
	d.Held = nil
	e, err := ledger.ParseEntry(d.Job, string(d.Entry))
	if current, known := d.Definitions[e.Digest]; known && err == nil {
		d.Definitions = map[string]Text{e.Digest: current}
	} else {
		d.Definitions = nil
	}
	return d
}

// Check returns ErrUnknownFormat for a document that this version cannot import whole, with the
// record that it cannot read. Rows of the history may be newer: they are kept as they are.
func (d Document) Check() error {
	bad := func(what string, err error) error {
		return fmt.Errorf("%w: %s of job %q: %w", ledger.ErrUnknownFormat, what, d.Job, err)
	}
	if d.Job == "" {
		if d.Entry != "" || d.Running != nil || d.Waiting != nil || d.History != nil {
			return fmt.Errorf("%w: a document names no job", ledger.ErrUnknownFormat)
		}
		return nil
	}
	if d.Entry != "" {
		e, err := ledger.ParseEntry(d.Job, string(d.Entry))
		if err != nil {
			return bad("entry", err)
		}
		var of struct{ Name string }
		if err := json.Unmarshal([]byte(d.Definitions[e.Digest]), &of); err != nil || of.Name != d.Job {
			return bad("definition", fmt.Errorf("%s is not there, or names another job", e.Digest))
		}
	}
	for run, record := range d.Running {
		if l, err := ledger.ParseRun(run, string(record)); err != nil || l.Job != d.Job {
			return bad("run "+run, err)
		}
	}
	for run, w := range d.Waiting {
		if l, err := ledger.ParsePending(run, string(w.Record)); err != nil || l.Job != d.Job {
			return bad("pending run "+run, err)
		}
	}
	for _, record := range []Text{d.Backfill, d.Backfilled} {
		if b, err := ledger.ParseBackfill(string(record)); record != "" && (err != nil || b.Job != d.Job) {
			return bad("backfill", err)
		}
	}
	for field, record := range d.Joins {
		if strings.Count(field, "|") != 1 {
			continue // a list of ticks, or a result
		}
		if err := new(ledger.JoinState).ReadJoin(string(record)); err != nil {
			return bad("join "+field, err)
		}
	}
	for _, e := range d.Events {
		if event, err := ledger.ParseEvent(string(e.Record)); err != nil || event.Upstream != d.Job {
			return bad("event", err)
		}
	}
	return nil
}

// Digest counts documents and makes one digest of them: the same for the same content, in however
// many partitions it lies and in whatever order it comes. It is not safe for concurrent use.
type Digest struct {
	// Jobs are the entries; Running the runs in flight; Pending the runs that were never granted;
	// Ticks the open ticks of sharded jobs; Rows the rows of all histories; Unique the keys
	// remembered; Events the events not yet delivered to followers; Bytes the length of the
	// documents.
	Jobs, Running, Pending, Ticks, Rows, Unique, Events, Bytes int64

	sum   [4]uint64
	loose map[string]int64 // unique keys of no known job; a key may lie in several partitions
}

// NewDigest begins one.
func NewDigest() *Digest { return &Digest{loose: make(map[string]int64)} }

// Add counts one document.
func (g *Digest) Add(d Document) {
	g.Jobs += count(d.Entry != "")
	g.Running += int64(len(d.Running))
	for _, w := range d.Waiting {
		g.Pending += count(w.Start != nil)
		g.Ticks += count(strings.HasPrefix(string(w.Record), "1T|"))
	}
	g.Rows += int64(len(d.History))
	g.Events += int64(len(d.Events))
	if d.Job == "" {
		for key, until := range d.Unique {
			if _, known := g.loose[key]; !known {
				g.Unique++
			}
			g.loose[key] = max(g.loose[key], until)
		}
		return
	}
	g.Unique += int64(len(d.Unique))
	d.Held = slices.Clone(d.Held)
	for i := range d.Held {
		d.Held[i].Since, d.Held[i].Seen = 0, 0 // these are the chunk's, which other jobs and other nodes share
	}
	g.mix(d)
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// mix adds the hash of one document to the sum.
func (g *Digest) mix(d Document) {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and numbers
	}
	g.Bytes += int64(len(text))
	hash := sha256.Sum256(text)
	for i := range g.sum {
		g.sum[i] += binary.BigEndian.Uint64(hash[i*8:])
	}
}

// Sum is the digest of all documents so far, in hex.
func (g *Digest) Sum() string {
	whole := *g
	if len(g.loose) > 0 {
		whole.mix(Document{Unique: g.loose})
	}
	var b [32]byte
	for i, n := range whole.sum {
		binary.BigEndian.PutUint64(b[i*8:], n)
	}
	return hex.EncodeToString(b[:])
}
