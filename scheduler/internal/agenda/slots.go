package agenda

import (
	"sync"
	"time"
)

// Slots counts the runs that the node may still take. A claim takes a slot before it is sent, and
// the run keeps it until its outcome is settled. So no work can queue behind a claim without bound.
//
// At an unreachable master of a Cluster, a claim in doubt holds no slot, nor does a report that
// waits. A run that such a claim was granted takes a slot again when its grant arrives.
//
// While the machine cannot begin runs, no slot is taken.
type Slots struct {
	suspension
	size int

	mu   sync.Mutex
	free int // negative: Retake took more than there were
}

// NewSlots makes that many slots.
func NewSlots(size int) *Slots { return &Slots{size: size, free: size} }

// Size is the number of slots.
func (s *Slots) Size() int { return s.size }

// take takes a slot; false when none is free. Only the agenda takes and, while it runs, releases
// slots, but for Retake. So its claims do not depend on which goroutine was quicker.
func (s *Slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 {
		return false
	}
	s.free--
	return true
}

func (s *Slots) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}

// Retake takes a slot again for the run of a claim that was in doubt. False: no slot was free. The
// node then runs one too many until the slot is released.
func (s *Slots) Retake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
	return s.free >= 0
}

// Full reports whether no slot can be taken.
func (s *Slots) Full() bool {
	if s.suspended(time.Now()) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0
}

// Used is the number of slots that are taken.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.free
}
