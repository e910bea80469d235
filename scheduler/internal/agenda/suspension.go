package agenda

import (
	"fmt"
	"sync"
	"time"
)

const (
	// firstPause and longestPause bound how long a node takes no runs after a run that could not
	// begin on its machine.
	firstPause   = time.Second
	longestPause = time.Minute
	// provenAfter is how long after the last pause the machine counts as well again.
	provenAfter = time.Minute
)

// suspension keeps a node from taking runs that its machine cannot begin.
//
//	well ──Suspend──► suspended ──pause over──► on trial ──provenAfter──► well
//	                      ▲                        │
//	                      └───────Suspend──────────┘ for twice the pause; for the first one where a run has Begun meanwhile
type suspension struct {
	mu    sync.Mutex
	why   error         // the last fault; nil: well
	since time.Time     // of the first fault
	until time.Time     // the end of the pause
	pause time.Duration // the last one; 0 when a run has begun since
}

// Suspend notes that a run could not begin on this machine: no slot is taken for a while. It
// returns for how long; 0 during a pause.
func (s *suspension) Suspend(why error, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(now)
	switch {
	case s.why == nil:
		s.since = now
	case now.Before(s.until): // a run that was granted before
		return 0
	}
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.why, s.until = why, now.Add(s.pause)
	return s.pause
}

// Began notes that a run has begun well that was started at an instant. It reports whether that is
// the first one after a pause.
func (s *suspension) Began(started time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil || s.pause == 0 || started.Before(s.until) {
		return false
	}
	s.pause = 0
	return true
}

// suspended reports whether no slot is to be taken now.
func (s *suspension) suspended(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why != nil && now.Before(s.until)
}

// Err returns why the node takes no runs, or takes them on trial; nil when it is well.
func (s *suspension) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.settle(now); s.why == nil {
		return nil
	}
	next := "the last run has begun well"
	if left := s.until.Sub(now); left > 0 {
		next = fmt.Sprintf("no run is taken for another %s", left.Round(100*time.Millisecond))
	} else if s.pause > 0 {
		next = "the next run shows whether it can"
	}
	return fmt.Errorf("this machine cannot begin runs, first at %s: %w; %s", s.since.UTC().Format(time.RFC3339), s.why, next)
}

// settle ends a trial that was long enough. The caller holds the lock.
func (s *suspension) settle(now time.Time) {
	if s.why != nil && now.Sub(s.until) > provenAfter {
		s.why, s.pause = nil, 0
	}
}
