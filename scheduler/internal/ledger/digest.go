package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

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
