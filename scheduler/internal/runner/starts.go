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
	at map[int64]*instant // by instant, ms
}

// instant is the start of the runs that are granted ahead of it.
type instant struct {
	over chan struct{} // closed when the instant has come, or when the wait for it is over
	came bool          // it has come; written before over is closed
}

func (i *instant) end(came bool) {
	i.came = came
	close(i.over)
}

func newStarts(past func() time.Time) *starts {
	return &starts{past: past, at: make(map[int64]*instant)}
}

// wait returns an instant (ms) to wait for; nil when it has come already.
func (s *starts) wait(at int64) *instant {
	if at <= s.past().UnixMilli() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[at] == nil {
		s.at[at] = &instant{over: make(chan struct{})}
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
		s.at[at].end(true)
		delete(s.at, at)
	}
	return 0
}

// end wakes all runs that wait, before their instants have come.
func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, i := range s.at {
		i.end(false)
		delete(s.at, at)
	}
}
