package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/admission"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// saveWithin bounds a call that saves or reads a checkpoint.
	saveWithin = 2 * time.Second
	// waitNoteMax bounds the stored words for a wait, in bytes.
	waitNoteMax = 400
	// savedAgain is the wait before a checkpoint that could not be read is read again.
	savedAgain = time.Second
)

// runStore has a run's checkpoint and progress, for all of its tries.
type runStore struct {
	checkpoints Checkpoints
	now         func() time.Time // Redis' time
	log         *slog.Logger
	grant       work.Grant
	valid       func() bool     // the run's lease is valid
	ctx         context.Context // the function's; set once, before its first call

	calls sync.Mutex // held during a call of Redis: one call after another
	known bool       // the earlier attempts' checkpoint has been read. The lock of calls guards it

	mu        sync.Mutex
	data      []byte       // the newest checkpoint
	savedBy   string       // the run that Redis has it of; "" when there is none
	wait      *ledger.Wait // what the run waits for before it starts, or an empty one after that; nil: it did not wait
	said      bool         // the run has reported its progress
	progress  ledger.Progress
	moved     time.Time // when the run last made progress; zero while its function is not called
	stalled   bool      // the stall was reported
	stalledAt time.Time // when the stall was first reported
}

var _ jobs.RunStore = (*runStore)(nil)

func newRunStore(c Config, g work.Grant, valid func() bool) *runStore {
	return &runStore{checkpoints: c.Redis, now: c.Now, log: c.Log, grant: g, valid: valid}
}

// Save implements jobs.RunStore.
func (s *runStore) Save(ctx context.Context, data []byte) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	if !s.valid() {
		return fmt.Errorf("save a checkpoint: %w", locking.ErrLeaseLost)
	}
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	if err := s.read(ctx); err != nil {
		return err
	}
	own, before := s.grant.Lease.ID, s.by()
	if before == own {
		before = ""
	}
	if err := s.checkpoints.Save(ctx, s.grant.Lease, before, data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data, s.savedBy = data, own
	s.moves()
	return nil
}

// Saved implements jobs.RunStore.
func (s *runStore) Saved() []byte {
	s.calls.Lock()
	defer s.calls.Unlock()
	for logged := false; ; logged = true {
		ctx, cancel := context.WithTimeout(s.ctx, saveWithin)
		err := s.read(ctx)
		cancel()
		if err == nil {
			break
		}
		if !logged && s.ctx.Err() == nil {
			s.log.Warn("the checkpoint of an attempt before cannot be read; the run waits until it can",
				"job", s.grant.Job.Name, "run", s.grant.Lease.ID, "error", err)
		}
		if !wait.For(s.ctx, savedAgain) {
			return nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

// read reads the earlier attempts' checkpoint, once; a first attempt has none. The caller holds the
// lock of calls.
func (s *runStore) read(ctx context.Context) error {
	if s.known || s.grant.Lease.Attempt < 2 {
		return nil
	}
	by, data, err := s.checkpoints.Saved(ctx, s.grant.Lease)
	if errors.Is(err, ledger.ErrUnknownFormat) { // it stays so
		s.log.Warn("not all that the attempts before have left can be read; the run goes on from what can, or begins anew",
			"job", s.grant.Job.Name, "run", s.grant.Lease.ID, "error", err)
	} else if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.savedBy, s.data = true, by, data
	return nil
}

// by is the run of the newest checkpoint in Redis, as far as this run knows: itself, an earlier
// attempt, or "".
func (s *runStore) by() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.savedBy
}

// Progress implements jobs.RunStore.
func (s *runStore) Progress(p jobs.Progress) {
	now := s.now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.progress
	if s.said && was.Done == p.Done && was.Total == p.Total && was.Note == p.Note {
		return
	}
	since, from := was.Since, was.From
	if !s.said || p.Done < was.Done { // it begins, or begins again
		since, from = now, p.Done
	}
	s.said, s.progress = true, ledger.Progress{At: now, Done: p.Done, Total: p.Total, Since: since, From: from, Note: p.Note}
	s.moves()
}

// waits notes what the run waits for before it starts.
func (s *runStore) waits(w admission.Wait) {
	note := "waits for " + w.What
	if w.Refusal != nil {
		note += ": " + w.Refusal.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.now().UnixMilli()
	if s.wait != nil {
		since = s.wait.At
	}
	s.wait = &ledger.Wait{At: since, Refused: w.Refusal != nil, Note: clip(strings.Join(strings.Fields(note), " "), waitNoteMax)}
}

// entered notes that the run no longer waits. A run that another node handed back may have waited
// there.
func (s *runStore) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait != nil || s.grant.WasPending {
		s.wait = &ledger.Wait{At: s.now().UnixMilli()}
	}
}

// text is how far the run is, or what it waits for, as the ledger keeps it; "" for neither.
func (s *runStore) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.said:
		return s.progress.Text()
	case s.wait != nil:
		return s.wait.Text()
	}
	return ""
}

// called notes that the function is called.
func (s *runStore) called() { s.progresses(time.Now()) }

// returned notes that the function has returned.
func (s *runStore) returned() { s.progresses(time.Time{}) }

// progresses notes when the run last made progress; zero while its function is not called.
func (s *runStore) progresses(at time.Time) {
	if s.grant.Job.StallAfter == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved, s.stalled = at, s.stalled && at.IsZero()
}

// moves notes that the run made progress. The caller holds the lock.
func (s *runStore) moves() {
	if !s.moved.IsZero() {
		s.moved, s.stalled = time.Now(), false
	}
}

// stalls reports, once, that the run made no progress for so long.
func (s *runStore) stalls(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled || s.moved.IsZero() || time.Since(s.moved) < after {
		return false
	}
	s.stalled = true
	if s.stalledAt.IsZero() {
		s.stalledAt = time.Now()
	}
	return true
}

// lookStalled reports a stalled run, and ends its context where the job is set to.
func (r *Runner) lookStalled(l *activeRun) {
	job := l.g.Job
	if job.StallAfter == 0 || !l.calling.Load() || l.ctx.Err() != nil || !l.store.stalls(job.StallAfter) {
		return
	}
	r.stalled.Add(1)
	r.Log.Warn("run made no progress", "job", job.Name, "tick", time.UnixMilli(l.g.Lease.Tick).UTC(), "run", l.g.Lease.ID,
		"token", l.g.Lease.Token, "for", job.StallAfter, "on_stall", job.OnStall.String())
	r.Listener.Stalled(l.g.Lease, l.started)
	if job.OnStall == jobs.OnStallCancel {
		l.lease.Cancel(jobs.ErrStalled)
	}
}
