package runner

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// starts has runs that were granted ahead wait for their ticks, all of one instant together.
type starts struct {
	past func() time.Time // an instant that Redis' clock has certainly reached

	mu    sync.Mutex
	at    map[int64]chan struct{} // by instant, ms: closed when it has come
	ended bool                    // nothing waits any more
}

func newStarts(past func() time.Time) *starts {
	return &starts{past: past, at: make(map[int64]chan struct{})}
}

// over is closed: what waits for it need not wait.
var over = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait returns what is closed when an instant (ms) has come, or nothing is to wait any more; nil when it has come.
func (s *starts) wait(at int64) <-chan struct{} {
	if at <= s.past().UnixMilli() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return over
	}
	if s.at[at] == nil {
		s.at[at] = make(chan struct{})
	}
	return s.at[at]
}

// wake lets the runs of all instants go that have come, and says how long it is to the next; 0 when there is none.
func (s *starts) wake() time.Duration {
	now := s.past()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(s.at)) {
		if left := time.UnixMilli(at).Sub(now); left > 0 {
			return left
		}
		close(s.at[at])
		delete(s.at, at)
	}
	return 0
}

// end lets all go, and whoever comes: they see that the node drains.
func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for at, wait := range s.at {
		close(wait)
		delete(s.at, at)
	}
}
