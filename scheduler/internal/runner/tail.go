package runner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

const (
	// tailAfter is how long a run must have gone on before its output is sent: most runs are over
	// before.
	tailAfter = time.Second
	// tailsMost bounds the bytes that a node sends at once: at most once a second. A tail that did
	// not fit goes first the next time.
	tailsMost = 128 << 10
	// tailWithin bounds a call. No look falls on the instant of its end: whether the look sends
	// would be chance.
	tailWithin = 1900 * time.Millisecond
)

// tails sends the output of runs in flight to Redis, so that people can read along. Nothing waits for
// it.
type tails struct {
	due chan struct{} // holds one signal: a run has written something
	mu  sync.Mutex    // held while tails are sent
}

// sentTail is a run's last stored tail. The lock of tails guards it.
type sentTail struct {
	of   *jobs.Run // the try, nil before the first
	size int64     // how much that try had written
	at   time.Time
}

// lookForTails wakes KeepTails when a run has written something since it was last kept.
func (r *Runner) lookForTails() {
	if !r.tails.mu.TryLock() {
		return // they are being sent
	}
	defer r.tails.mu.Unlock()
	found := false
	r.Active.each(func(l *activeRun) { found = found || r.wrote(l) })
	if found {
		wait.Signal(r.tails.due)
	}
}

// wrote reports whether a run has output that was not sent. The caller holds the lock of tails.
func (r *Runner) wrote(l *activeRun) bool {
	if !l.calling.Load() || r.Now().Sub(l.started) < tailAfter {
		return false
	}
	try := l.writing.Load()
	size := try.OutputSize()
	return size > 0 && (try != l.tail.of || size != l.tail.size)
}

// KeepTails sends the output of runs in flight, until ctx ends.
func (r *Runner) KeepTails(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.tails.due:
			r.sendTails(ctx)
		}
	}
}

// sendTails sends tails once, those first that have waited longest.
func (r *Runner) sendTails(ctx context.Context) {
	r.tails.mu.Lock()
	defer r.tails.mu.Unlock()
	var list []*activeRun
	r.Active.each(func(l *activeRun) {
		if r.wrote(l) {
			list = append(list, l)
		}
	})
	slices.SortFunc(list, func(a, b *activeRun) int {
		return cmp.Or(a.tail.at.Compare(b.tail.at), strings.Compare(a.run.ID(), b.run.ID()))
	})
	byPart, room := make(map[int][]*activeRun), tailsMost
	for _, l := range list {
		if room -= int(min(l.writing.Load().OutputSize(), jobs.MaxOutput)); room < 0 {
			break
		}
		byPart[l.g.Job.Part] = append(byPart[l.g.Job.Part], l)
	}
	for _, part := range slices.Sorted(maps.Keys(byPart)) {
		r.keep(ctx, part, byPart[part])
	}
}

// keep sends the tails of runs of one partition.
func (r *Runner) keep(ctx context.Context, part int, some []*activeRun) {
	ctx, cancel := context.WithTimeout(ctx, tailWithin)
	defer cancel()
	batch, sent := make([]settle.Tail, len(some)), make([]sentTail, len(some))
	for k, l := range some {
		try := l.writing.Load()
		sent[k] = sentTail{try, try.OutputSize(), r.Now()} // later output is sent once more
		batch[k] = tailOf(l, try.Written())
	}
	if err := r.Redis.Tail(ctx, part, batch); err != nil {
		r.Log.Debug("what runs have written could not be kept while they go on; it is tried again", "runs", len(some), "error", err)
		return
	}
	for k, l := range some {
		l.tail = sent[k]
	}
}

func tailOf(l *activeRun, output []byte) settle.Tail {
	return settle.Tail{Job: l.g.Job.Name, Run: l.g.Lease.ID, Token: l.g.Lease.Token, Output: output}
}
