package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// MaxCheckpoint is the size of a checkpoint in bytes.
const MaxCheckpoint = 64 << 10

// maxNote bounds the note of a Progress in bytes.
const maxNote = 200

// ErrStalled is the cause of a run's context when the run made no progress for Job.StallAfter, with
// StallCancel.
var ErrStalled = errors.New("jobs: the run made no progress")

// CheckpointSizeError is returned by Run.Save for data that is too large. Nothing was saved.
type CheckpointSizeError struct {
	Size, Limit int // bytes
}

// Error has both sizes.
func (e *CheckpointSizeError) Error() string {
	return fmt.Sprintf("jobs: a checkpoint of %d bytes is larger than %d; save where the data is instead of the data", e.Size, e.Limit)
}

// Progress is how far a run is.
type Progress struct {
	Done  int64  // at least 0
	Total int64  // 0: not known
	Note  string // one line of at most 200 bytes
}

// RunStore holds a run's checkpoint and progress, for all tries of the run. It is safe for
// concurrent use.
type RunStore interface {
	// Save stores data of at most MaxCheckpoint bytes.
	Save(ctx context.Context, data []byte) error
	// Saved returns the last stored data; nil for none. It waits until the data can be read, or the
	// run's context ends.
	Saved() []byte
	// Progress stores how far the run is. It does not block.
	Progress(p Progress)
}

// Save keeps data, at most MaxCheckpoint bytes, as the run's checkpoint: later tries of this run,
// and later attempts of the same tick and shard, get it from Saved. It replaces the one before.
// When the tick has succeeded, the checkpoint is deleted; otherwise it leaves with the run's row of
// the history.
//
// When Save returns nil, the data is stored in Redis under the run's lease and token. The error
// wraps locking.ErrLeaseLost when the run has its lease no longer; nothing is stored then, and
// nothing will be. It is a *CheckpointSizeError for too much data. After any other error, such as
// locking.ErrUnreachable, the data may be stored or not; save again.
//
// A checkpoint and its work are not written in one transaction. The next attempt repeats the work
// after the last checkpoint: make a step idempotent, or guard it with Token.
func (r *Run) Save(ctx context.Context, data []byte) error {
	if len(data) > MaxCheckpoint {
		return &CheckpointSizeError{len(data), MaxCheckpoint}
	}
	return r.info.Store.Save(ctx, bytes.Clone(data))
}

// Saved returns a copy of the newest checkpoint of the tick and shard: of this run, else of the
// attempt before it; nil for none. In the first attempt it returns at once. In a later one the
// first call reads Redis, and waits until Redis answers or the run's context ends; then it returns
// nil, and the function must not go on. A checkpoint in an unknown format, such as a newer
// version's, is logged and left out.
func (r *Run) Saved() []byte { return bytes.Clone(r.info.Store.Saved()) }

// Progress notes that done of total steps are done; a total of 0 is not known. The note is one line
// of at most 200 bytes; the rest is cut. It costs no call: the node sends it with the next renewal
// of the run's lease, each third of Job.TTL. People see it, and an estimate of the end, while the
// run goes on. Negative numbers count as 0.
func (r *Run) Progress(done, total int64, note string) {
	r.info.Store.Progress(Progress{Done: max(done, 0), Total: max(total, 0), Note: noteLine(note)})
}

// noteLine is a note on one line, cut at the border of a rune.
func noteLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > maxNote {
		s = strings.ToValidUTF8(s[:maxNote], "")
	}
	return s
}

// memoryStore is the store of a Run that the scheduler has not made: a test's.
type memoryStore struct {
	mu   sync.Mutex
	data []byte
}

func (m *memoryStore) Save(_ context.Context, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = data
	return nil
}

func (m *memoryStore) Saved() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data
}

func (*memoryStore) Progress(Progress) {}
