package jobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Causes of a run's context. The scheduler and the lease have further causes.
var (
	// ErrTimeout is the cause when the job's timeout has passed.
	ErrTimeout = errors.New("jobs: the job's timeout passed")
	// ErrCancelled is the cause when an operator cancelled the run.
	ErrCancelled = errors.New("jobs: the run was cancelled by an operator")
	// ErrReplaced is the cause when a newer tick of a job with OverlapReplace is due.
	ErrReplaced = errors.New("jobs: a newer tick replaces the run")
)

// RunInfo holds the fields of a Run.
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
	Payload []byte    // of a run by hand, the result of the job that it follows, or of a job with a handler

	Logger *slog.Logger // for Run.Logger; nil: slog.Default()
	Store  RunStore     // for Save, Saved and Progress; nil: in memory, for this Run alone
	Lease  Lease        // for Run.Lease; nil: none
}

// Run describes a run to its function. It does not change: each try gets its own Run, with another
// Try and another output. It is safe for concurrent use.
type Run struct {
	info   RunInfo
	output output
	result atomic.Pointer[[]byte]
	logged sync.Once
	logger *slog.Logger // set by the first Logger
}

// NewRun returns a Run, for the scheduler and for tests. The tick is converted to UTC and the
// payload is copied. Shards, Attempt and Try below 1 become 1.
func NewRun(info RunInfo) *Run {
	if !info.Tick.IsZero() {
		info.Tick = info.Tick.UTC()
	}
	info.Shards = max(info.Shards, 1)
	info.Attempt = max(info.Attempt, 1)
	info.Try = max(info.Try, 1)
	info.Payload = bytes.Clone(info.Payload)
	if info.Store == nil {
		info.Store = &memoryStore{}
	}
	return &Run{info: info}
}

// ID returns the run's id, unique for each grant.
func (r *Run) ID() string { return r.info.ID }

// Job returns the job's name.
func (r *Run) Job() string { return r.info.Job }

// Tick returns the scheduled instant in UTC, the same for every attempt and shard. Compute with
// this time and not with "now", which is later.
func (r *Run) Tick() time.Time { return r.info.Tick }

// Token returns the fencing token: larger than the token of every earlier run of the job. Send it
// with each write, so that a guard (package locking/fence) can refuse a write of an earlier run.
func (r *Run) Token() int64 { return r.info.Token }

// Attempt returns the number of this grant of the tick and shard, from 1.
func (r *Run) Attempt() int { return r.info.Attempt }

// Try returns the number of this call inside the run, from 1.
func (r *Run) Try() int { return r.info.Try }

// Shard returns the number of this part of the tick, from 0.
func (r *Run) Shard() int { return r.info.Shard }

// Shards returns the number of parts of the tick, at least 1.
func (r *Run) Shards() int { return r.info.Shards }

// Node returns the name of the node that runs it.
func (r *Run) Node() string { return r.info.Node }

// Trigger returns the reason for the run.
func (r *Run) Trigger() Trigger { return r.info.Trigger }

// Param returns the shard's parameter; "" without Job.Params.
func (r *Run) Param() string { return r.info.Param }

// Payload returns a copy of a manual run's payload, else of the upstream's result (SetResult), else
// of Job.Payload; nil without one. With several upstreams it is a JSON object with their results,
// by the job's name; an upstream without a result is left out.
func (r *Run) Payload() []byte { return bytes.Clone(r.info.Payload) }

// Logger returns the node's logger with the attributes job, tick, run (the id), token and attempt,
// and shard for a sharded job.
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

// Output returns a writer for text that is stored with the run: the last MaxOutput bytes. Each try
// has its own output; the last try's is stored. Writing never fails.
func (r *Run) Output() io.Writer { return &r.output }

// OutputSize returns how many bytes were written to Output, dropped bytes included.
func (r *Run) OutputSize() int64 { return r.output.size() }

// Written returns a copy of the last MaxOutput bytes of Output; nil when nothing was written.
func (r *Run) Written() []byte { return r.output.bytes() }

// Lease is the time that a run has, for work outside of its function that must end before the run's
// lease can be another's, such as a command. It is safe for concurrent use while the function has
// not returned.
type Lease interface {
	// Left returns how long the run may go on if its lease is renewed no more. It is not positive
	// once the lease has ended. It counts on this machine's monotonic clock and needs no network.
	Left() time.Duration
	// Margin returns how long after Left's end no other node is granted the lease.
	Margin() time.Duration
}

// Lease returns the time that the run has; nil outside of a scheduler. A function that looks at its
// context needs no more than that.
func (r *Run) Lease() Lease { return r.info.Lease }

// ErrTryTimeout is the cause of a try's context when the Timeout of the job's Retry has passed. The
// run goes on: it may have another try.
var ErrTryTimeout = errors.New("jobs: the timeout of one try passed")

type traceparentKey struct{}

// traceparentPattern is the format of W3C Trace Context, version 00: version, trace, parent and
// flags.
var traceparentPattern = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// WithTraceparent returns a context that carries a trace to the command or request of a job, for a
// scheduler's Middleware that traces runs: execjob sets TRACEPARENT, httpjob the header
// traceparent. The value is a W3C header's, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. Any other value, also with a trace or
// parent of zeros only, is not carried: ctx is returned.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	parts := traceparentPattern.FindStringSubmatch(traceparent)
	if parts == nil || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ctx
	}
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// Traceparent returns the value of WithTraceparent in ctx or a parent of it; "" for none.
func Traceparent(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceparentKey{}).(string)
	return traceparent
}
