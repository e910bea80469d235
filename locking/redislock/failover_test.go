//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// Times of the crew: a lease left behind by a failover lapses soon.
const (
	crewTTL    = 1500 * time.Millisecond
	crewMargin = 300 * time.Millisecond
	crewCall   = 300 * time.Millisecond
)

// sink is the resource behind the lock. It refuses a write with a smaller token than its largest,
// as a guarded store does.
type sink struct {
	mu      sync.Mutex
	token   locking.Token // the largest seen
	owner   string        // of the largest token
	writes  int
	refused int
	twins   int // two grants with one token
}

// write reports whether the write was accepted.
func (s *sink) write(l *locking.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.Token() < s.token:
		s.refused++
		return false
	case l.Token() == s.token && l.Owner() != s.owner:
		s.twins++
		return false
	}
	s.token, s.owner = l.Token(), l.Owner()
	s.writes++
	return true
}

// turn is one grant as its holder saw it.
type turn struct {
	asked, got time.Time
	token      locking.Token
	accepted   bool // by the sink
}

// crew is a number of lockers, each with a client of its own, that take a lock,
// write to the sink and give the lock back, again and again.
type crew struct {
	tb   testing.TB
	sink sink

	mu       sync.Mutex
	turns    []turn
	inside   map[string]*locking.Lease // by owner
	overlaps int                       // turns that began while another holder's lease was valid
	end      context.CancelFunc
	done     sync.WaitGroup
}

// crewLocker returns the locker of one of a crew.
func crewLocker(tb testing.TB, s shape) *locking.Locker {
	return s.locker(tb, redislock.Config{Margin: crewMargin, CallTimeout: crewCall})
}

// musters starts a crew.
func musters(tb testing.TB, s shape) *crew {
	ctx, cancel := context.WithCancel(tb.Context())
	w := &crew{tb: tb, inside: make(map[string]*locking.Lease), end: cancel}
	for range 4 {
		l := crewLocker(tb, s)
		w.done.Go(func() {
			for ctx.Err() == nil {
				w.take(ctx, l)
			}
		})
	}
	tb.Cleanup(w.stop)
	return w
}

// stop ends the crew's work and waits for it.
func (w *crew) stop() {
	w.end()
	w.done.Wait()
}

// take is one turn. A lock that cannot be had is no failure, nor is a missing answer during a
// failover.
func (w *crew) take(ctx context.Context, l *locking.Locker) {
	asked := time.Now()
	lease, err := l.Acquire(ctx, lockName, locking.Options{TTL: crewTTL, Wait: time.Second})
	switch {
	case err == nil:
	case errors.Is(err, locking.ErrHeld), errors.Is(err, locking.ErrUnreachable), ctx.Err() != nil:
		return
	default:
		w.tb.Errorf("acquire: %v", err)
		return
	}
	w.enter(lease)
	w.note(turn{asked: asked, got: time.Now(), token: lease.Token(), accepted: w.sink.write(lease)})
	<-time.After(time.Millisecond) // its work, in which another holder would be seen
	w.leave(lease)
	err = lease.Release(ctx)
	if err != nil && !errors.Is(err, locking.ErrLost) && !errors.Is(err, locking.ErrUnreachable) {
		w.tb.Errorf("release: %v", err)
	}
}

func (w *crew) enter(lease *locking.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.inside {
		if other.Valid() {
			w.overlaps++
			break
		}
	}
	w.inside[lease.Owner()] = lease
}

func (w *crew) leave(lease *locking.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, lease.Owner())
}

func (w *crew) note(t turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns = append(w.turns, t)
}

// since waits for n turns that began to wait after moment and whose write was accepted, and returns
// when the first of these turns got the lock.
func (w *crew) since(moment time.Time, n int) time.Time {
	w.tb.Helper()
	var first time.Time
	await(w.tb, fmt.Sprintf("%d more turns", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		found := 0
		for _, t := range slices.Backward(w.turns) {
			if t.asked.After(moment) && t.accepted {
				found, first = found+1, t.got
			}
		}
		return found >= n
	})
	return first
}

// disorders counts the turns that began to wait after another grant had arrived, and yet got no
// larger token.
func (w *crew) disorders() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byEnd, byStart := slices.Clone(w.turns), slices.Clone(w.turns)
	slices.SortFunc(byEnd, func(a, b turn) int { return a.got.Compare(b.got) })
	slices.SortFunc(byStart, func(a, b turn) int { return a.asked.Compare(b.asked) })
	var largest locking.Token
	i := 0
	for _, t := range byStart {
		for ; i < len(byEnd) && byEnd[i].got.Before(t.asked); i++ {
			largest = max(largest, byEnd[i].token)
		}
		if t.token <= largest {
			n++
		}
	}
	return n
}

// report ends the crew, checks the invariants, and logs the rest.
func (w *crew) report(what string) {
	w.tb.Helper()
	w.stop()
	tokens := make([]locking.Token, len(w.turns))
	for i, t := range w.turns {
		tokens[i] = t.token
	}
	slices.Sort(tokens)
	if n := len(tokens) - len(slices.Compact(slices.Clone(tokens))); n > 0 || w.sink.twins > 0 {
		w.tb.Errorf("%s: %d of %d grants have a token that another one has too", what, n, len(tokens))
	}
	w.tb.Logf("%s: %d turns, %d writes accepted, %d stale writes refused, %d grants out of order, %d overlaps of holders",
		what, len(w.turns), w.sink.writes, w.sink.refused, w.disorders(), w.overlaps)
}

// inOrder wants every later grant to have the larger token.
func (w *crew) inOrder() {
	w.tb.Helper()
	if n := w.disorders(); n > 0 {
		w.tb.Errorf("%d grants had no larger token than one before them", n)
	}
}

// sentinelSet is the one set of Sentinels of the package, started by the first test that wants it and ended by TestMain. It is one test's at a time.
var sentinelSet struct {
	sync.Mutex
	*redistest.Sentinels
	dir string
}

func watched(tb testing.TB) *redistest.Sentinels {
	tb.Helper()
	sentinelSet.Lock()
	tb.Cleanup(sentinelSet.Unlock)
	if sentinelSet.Sentinels != nil {
		return sentinelSet.Sentinels
	}
	var err error
	if sentinelSet.dir, err = os.MkdirTemp("", "redislock-"); err == nil {
		sentinelSet.Sentinels, err = redistest.StartSentinelsProcess(redistest.SentinelsConfig{Dir: sentinelSet.dir, Attentive: true})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return sentinelSet.Sentinels
}

// ending ends the shared servers, after all tests.
type ending struct{ *testing.M }

func (e ending) Run() int {
	code := e.M.Run()
	if sentinelSet.Sentinels != nil {
		if err := errors.Join(sentinelSet.Kill(), os.RemoveAll(sentinelSet.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func TestConformanceSentinel(t *testing.T) {
	t.Parallel()
	conforms(t, sentinels(watched(t)))
}

// replaced has a crew work while the master of its lock ends in some way, and another one takes its place.
func replaced(t *testing.T, s shape, master *redistest.Server, end, after func(s *redistest.Server) error, promoted, demoted func(ctx context.Context) error) *crew {
	ctx := bound(t)
	w := musters(t, s)
	w.since(time.Now(), 100)
	if err := end(master); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	if err := promoted(ctx); err != nil {
		t.Fatal(err)
	}
	if err := after(master); err != nil {
		t.Fatal(err)
	}
	resumed := w.since(ended, 100)
	t.Logf("had again %s after the end", resumed.Sub(ended).Round(time.Millisecond))
	if err := demoted(ctx); err != nil {
		t.Fatal(err)
	}
	w.since(time.Now(), 100)
	w.report(t.Name())
	return w
}

func sentinelsReplace(t *testing.T, end, after func(s *redistest.Server) error) *crew {
	s := watched(t)
	master := mustMaster(t, s)
	return replaced(t, sentinels(s), master, end, after,
		func(ctx context.Context) error { _, err := s.Promoted(ctx, master); return err },
		func(ctx context.Context) error { return s.Demoted(ctx, master) })
}

// The old master wakes when another one has taken its place, and may answer for a moment. Writes
// under its grants of that moment are refused by the sink.
func TestSentinelMasterPaused(t *testing.T) {
	t.Parallel()
	sentinelsReplace(t, (*redistest.Server).Pause, (*redistest.Server).Resume)
}

func TestSentinelMasterKilled(t *testing.T) {
	t.Parallel()
	sentinelsReplace(t, (*redistest.Server).Kill, (*redistest.Server).Restart).inOrder()
}

// TestSentinelGrantsLost loses grants that the master has acknowledged: a holder gets the lock when
// no replica receives it any more, and holds it while another master gives the same lock away.
func TestSentinelGrantsLost(t *testing.T) {
	t.Parallel()
	s := watched(t)
	ctx := bound(t)
	sleepy := crewLocker(t, sentinels(s))
	w := musters(t, sentinels(s))
	w.since(time.Now(), 50)
	master := mustMaster(t, s)
	if err := s.Part(ctx); err != nil {
		t.Fatal(err)
	}
	w.since(time.Now(), 20) // all of them only at the old master
	stale, err := sleepy.Acquire(ctx, lockName, locking.Options{TTL: 12 * time.Second, Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stale.Close)
	w.enter(stale)
	if !w.sink.write(stale) {
		t.Error("the holder's first write was refused")
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	w.since(time.Now(), 50)
	before := w.sink.refused
	if w.sink.write(stale) || w.sink.refused == before {
		t.Error("a holder whose grant was lost writes after its successor")
	}
	select {
	case <-stale.Context().Done():
	case <-time.After(standstill):
	}
	if err := context.Cause(stale.Context()); !errors.Is(err, locking.ErrLeaseLost) {
		t.Errorf("the context of the holder whose grant was lost has cause %v; want %v", err, locking.ErrLeaseLost)
	}
	// Two holders at once: Redis has lost acknowledged writes, see doc.go.
	w.report("grants lost")
	w.inOrder()
	if err := errors.Join(master.Restart(), s.Demoted(ctx, master)); err != nil {
		t.Fatal(err)
	}
}

func mustMaster(tb testing.TB, s *redistest.Sentinels) *redistest.Server {
	tb.Helper()
	master, err := s.Master()
	if err != nil {
		tb.Fatal(err)
	}
	return master
}
