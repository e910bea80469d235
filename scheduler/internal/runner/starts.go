package runner

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// starts lets runs that were granted ahead wait for their ticks, all of one instant together.
type starts struct {
	past func() time.Time // an instant that Redis' clock has certainly reached

	mu sync.Mutex
	at map[int64]chan struct{} // by instant, ms; closed when it has come
}

func newStarts(past func() time.Time) *starts {
	return &starts{past: past, at: make(map[int64]chan struct{})}
}

// wait returns a channel that is closed when an instant (ms) has come, or at end; nil when it has
// come already.
func (s *starts) wait(at int64) <-chan struct{} {
	if at <= s.past().UnixMilli() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[at] == nil {
		s.at[at] = make(chan struct{})
	}
	return s.at[at]
}

// wake starts the runs of all instants that have come. It returns the time until the next one, 0
// when there is none.
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

// end wakes all runs that wait. They find that the node drains, or does not believe Redis' clock.
func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, wait := range s.at {
		close(wait)
		delete(s.at, at)
	}
}
