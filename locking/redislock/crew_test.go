//go:build unix

package redislock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// Times of the crew: a lease left behind by a failover lapses soon.
const (
	crewTTL    = 1500 * time.Millisecond
	crewMargin = 300 * time.Millisecond
	crewCall   = 300 * time.Millisecond

	// resumeWithin bounds a failover of some three seconds, and a lease that lapses.
	resumeWithin = 20 * time.Second
)

// sink is what the lock guards. It refuses a write with a smaller token than it
// has seen, as a guarded store does.
type sink struct {
	mu      sync.Mutex
	token   locking.Token // the largest seen
	owner   string        // whose that is
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

// newLocker returns the locker of one of a crew.
func newLocker(tb testing.TB, s shape, meddle func(d locking.Driver, c redis.UniversalClient) locking.Driver) *locking.Locker {
	c, _ := s.client(tb)
	var d locking.Driver = redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
	if meddle != nil {
		d = meddle(d, c)
	}
	l := locking.New(d, locking.Config{Margin: crewMargin, CallTimeout: crewCall})
	tb.Cleanup(l.Close)
	return l
}

// musters starts a crew over the lockers.
func musters(tb testing.TB, lockers []*locking.Locker) *crew {
	ctx, cancel := context.WithCancel(tb.Context())
	w := &crew{tb: tb, inside: make(map[string]*locking.Lease), end: cancel}
	for _, l := range lockers {
		w.done.Go(func() {
			for ctx.Err() == nil {
				w.take(ctx, l)
			}
		})
	}
	tb.Cleanup(w.stop)
	return w
}

func lockersOf(tb testing.TB, s shape, meddle func(d locking.Driver, c redis.UniversalClient) locking.Driver) []*locking.Locker {
	var lockers []*locking.Locker
	for range 4 {
		lockers = append(lockers, newLocker(tb, s, meddle))
	}
	return lockers
}

// stop ends the crew's work and waits for it.
func (w *crew) stop() {
	w.end()
	w.done.Wait()
}

// take is one turn. That the lock cannot be had is no failure, and no answer
// during a failover neither.
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

// since waits for n turns that were asked for after a moment and whose write was
// accepted, and returns when the first of them began.
func (w *crew) since(moment time.Time, n int) time.Time {
	w.tb.Helper()
	var first time.Time
	await(w.tb, resumeWithin, fmt.Sprintf("%d more turns", n), func() bool {
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

// disorders counts the turns that were asked for after another grant was had, and
// yet got no larger token.
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

// report ends the crew, checks what always holds, and logs the rest.
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

// bound is a context for one failover.
func bound(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func mustMaster(tb testing.TB, s *redistest.Sentinels) *redistest.Server {
	tb.Helper()
	master, err := s.Master()
	if err != nil {
		tb.Fatal(err)
	}
	return master
}

// TestCrewSeesTwoHolders gives the lock also to those who find it held.
func TestCrewSeesTwoHolders(t *testing.T) {
	lenient := func(d locking.Driver, _ redis.UniversalClient) locking.Driver {
		return granter{d, func(ctx context.Context, r locking.Request) (locking.Grant, error) {
			g, err := d.Acquire(ctx, r)
			if errors.Is(err, locking.ErrHeld) {
				now := time.Now()
				g, err = locking.Grant{Name: r.Name, Owner: r.Owner, TTL: r.TTL, Token: now.UnixMicro(), Asked: now}, nil
			}
			return g, err
		}}
	}
	w := musters(t, lockersOf(t, standalone(t), lenient))
	w.since(time.Now(), 50)
	w.stop()
	if w.overlaps == 0 {
		t.Error("two hold the lock, and nobody sees it")
	}
}

// TestDisorders checks the checker against pairs.
func TestDisorders(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for name, tt := range map[string]struct {
		turns []turn
		want  int
	}{
		"one after the other":       {[]turn{{asked: at(0), got: at(1), token: 5}, {asked: at(2), got: at(3), token: 6}}, 0},
		"the later one smaller":     {[]turn{{asked: at(0), got: at(1), token: 5}, {asked: at(2), got: at(3), token: 4}}, 1},
		"the later one the same":    {[]turn{{asked: at(0), got: at(1), token: 5}, {asked: at(2), got: at(3), token: 5}}, 1},
		"at the same time":          {[]turn{{asked: at(0), got: at(3), token: 5}, {asked: at(1), got: at(2), token: 4}}, 0},
		"two after a larger one":    {[]turn{{asked: at(0), got: at(1), token: 9}, {asked: at(2), got: at(3), token: 5}, {asked: at(4), got: at(5), token: 6}}, 2},
		"noted in another sequence": {[]turn{{asked: at(2), got: at(3), token: 6}, {asked: at(0), got: at(1), token: 5}}, 0},
	} {
		w := &crew{turns: slices.SortedFunc(slices.Values(tt.turns), func(a, b turn) int { return cmp.Compare(b.token, a.token) })}
		if got := w.disorders(); got != tt.want {
			t.Errorf("%s: %d; want %d", name, got, tt.want)
		}
	}
}
