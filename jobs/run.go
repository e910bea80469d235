package jobs

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

// The causes, of those that end a run's context, that have to do with the job. Others
// come from the scheduler and the lock.
var (
	// ErrTimeout is the cause when the job's timeout has passed.
	ErrTimeout = errors.New("jobs: the job's timeout passed")
	// ErrCancelled is the cause when an operator cancelled the run.
	ErrCancelled = errors.New("jobs: the run was cancelled by an operator")
	// ErrReplaced is the cause when a newer tick of a job with overlap replace is due and
	// waits for this run to end.
	ErrReplaced = errors.New("jobs: a newer tick replaces the run")
)

// RunInfo is what a granted run is made of.
type RunInfo struct {
	ID      string    // unique for each grant
	Job     string    // the job's name
	Tick    time.Time // the scheduled instant, whole milliseconds
	Shard   int       // from 0
	Shards  int       // at least 1
	Attempt int       // from 1: the n-th grant of this tick and shard
	Try     int       // from 1: the n-th call inside this run
	Token   int64     // the fencing token
	Node    string    // the name of the node it runs on
	Trigger Trigger   // why it was granted
	Param   string    // the shard's parameter
	Payload []byte    // what the caller of a manual run sent

	Logger *slog.Logger // what Run.Logger adds the run's facts to; nil is slog.Default()
}

// Run is what a job's function learns about itself. Its facts never change: each try is
// handed a Run of its own, which differs in Try and in its output. It is safe for
// concurrent use.
type Run struct {
	info   RunInfo
	output output
	logged sync.Once
	logger *slog.Logger // once it was asked for
}

// NewRun makes a Run. The tick is kept in UTC and the payload is copied; Shards, Attempt
// and Try below 1 become 1.
func NewRun(info RunInfo) *Run {
	if !info.Tick.IsZero() {
		info.Tick = info.Tick.UTC()
	}
	info.Shards = max(info.Shards, 1)
	info.Attempt = max(info.Attempt, 1)
	info.Try = max(info.Try, 1)
	info.Payload = bytes.Clone(info.Payload)
	return &Run{info: info}
}

// ID returns the run's own name, unique for each grant.
func (r *Run) ID() string { return r.info.ID }

// Job returns the job's name.
func (r *Run) Job() string { return r.info.Job }

// Tick returns the scheduled instant in UTC, the same for every attempt and shard. It is
// the right time to compute with: "now" may be later.
func (r *Run) Tick() time.Time { return r.info.Tick }

// Token returns the fencing token: larger than that of every run of the job granted
// before this one.
func (r *Run) Token() int64 { return r.info.Token }

// Attempt returns which grant of this tick and shard this is, from 1.
func (r *Run) Attempt() int { return r.info.Attempt }

// Try returns which call inside this run this is, from 1.
func (r *Run) Try() int { return r.info.Try }

// Shard returns which part of the tick this is, from 0.
func (r *Run) Shard() int { return r.info.Shard }

// Shards returns into how many parts the tick is split, at least 1.
func (r *Run) Shards() int { return r.info.Shards }

// Node returns the name of the node this runs on.
func (r *Run) Node() string { return r.info.Node }

// Trigger returns why the run was granted.
func (r *Run) Trigger() Trigger { return r.info.Trigger }

// Param returns the shard's parameter, empty when the job has none.
func (r *Run) Param() string { return r.info.Param }

// Payload returns a copy of what the caller of a manual run sent, nil for other runs.
func (r *Run) Payload() []byte { return bytes.Clone(r.info.Payload) }

// Logger returns the node's logger with the run's facts: job, tick, run (its id), token and attempt, and of a sharded job the shard.
func (r *Run) Logger() *slog.Logger {
	r.logged.Do(func() {
		log := r.info.Logger
		if log == nil {
			log = slog.Default()
		}
		if r.info.Shards > 1 {
			log = log.With("shard", r.info.Shard)
		}
		r.logger = log.With("job", r.info.Job, "tick", r.info.Tick, "run", r.info.ID, "token", r.info.Token, "attempt", r.info.Attempt)
	})
	return r.logger
}

// Output returns a writer for what is to be kept with the run, as the output of a command is: the last MaxOutput bytes.
// Each try has an output of its own; that of the last one is kept. Writing never fails.
func (r *Run) Output() io.Writer { return &r.output }

// Written returns a copy of what Output has kept, nil when nothing was written.
func (r *Run) Written() []byte { return r.output.bytes() }
