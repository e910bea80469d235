package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
)

// Census counts what an export gave, and makes a digest of it, the same for the same content however many partitions it lies
// in and in whatever order it comes. It is not safe for concurrent use.
type Census struct {
	// Jobs are the entries; Pending the runs that nobody was granted yet; Ticks the open ones of sharded jobs; Rows those of
	// all histories; Unique the keys remembered; Events those that followers have not been told; Bytes what all of it comes to,
	// without what Redis needs to hold it.
	Jobs, Pending, Ticks, Rows, Unique, Events, Bytes int64

	sum    [4]uint64
	unique map[string]float64 // the latest of those that lie in several partitions
}

// NewCensus begins one.
func NewCensus() *Census { return &Census{unique: make(map[string]float64)} }

// Add counts one piece; it is the sink of an Export.
func (c *Census) Add(p Piece) error {
	c.Bytes += int64(p.size())
	switch p.kind { //nolint:exhaustive // the others are not counted apart
	case pieceEntry:
		c.Jobs++
	case piecePending:
		c.Pending++
	case pieceWaiting:
		if len(p.value) > 2 && p.value[:3] == "1T|" {
			c.Ticks++
		}
	case pieceRows:
		c.Rows += int64(len(p.rows))
	case pieceEvent:
		c.Events++
	case pieceAnnounced:
		p.score = 0 // a chunk has the latest of its jobs
	case pieceUnique:
		was, ok := c.unique[p.name]
		if ok {
			c.mix(Piece{kind: pieceUnique, name: p.name, score: was}, true)
			p.score = math.Max(p.score, was)
		}
		c.unique[p.name] = p.score
		c.Unique = int64(len(c.unique))
		p.job = ""
	}
	c.mix(p, false)
	return nil
}

// mix adds the digest of a piece to the sum, or takes it away.
func (c *Census) mix(p Piece, away bool) {
	h := sha256.New()
	write := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Write([]byte{byte(p.kind)})
	write(p.job)
	write(p.name)
	write(p.value)
	write(strconv.FormatFloat(p.score, 'f', -1, 64))
	for _, row := range p.rows {
		write(row)
	}
	digest := h.Sum(nil)
	for i := range c.sum {
		n := binary.BigEndian.Uint64(digest[i*8:])
		if away {
			n = -n
		}
		c.sum[i] += n
	}
}

// Digest is that of all pieces so far, in hex.
func (c *Census) Digest() string {
	var b [32]byte
	for i, n := range c.sum {
		binary.BigEndian.PutUint64(b[i*8:], n)
	}
	return hex.EncodeToString(b[:])
}

// size is what the piece comes to in bytes.
func (p Piece) size() int {
	n := len(p.name) + len(p.value) + 8
	for _, row := range p.rows {
		n += len(row)
	}
	return n
}
