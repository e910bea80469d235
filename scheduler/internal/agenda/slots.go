package agenda

import (
	"sync"
)

// Slots counts what the node may still take on: a claim takes one before it is sent, and the run
// keeps it until its outcome is settled, so nothing behind a claim can queue without bound.
//
// A claim in doubt, at a master of a Cluster that does not answer, holds no slot, nor does the end of a run that waits for one. What such a
// claim was granted takes a slot again when that is heard of.
type Slots struct {
	size int

	mu   sync.Mutex
	free int // below 0: so many were taken again that others had
}

// NewSlots makes so many.
func NewSlots(size int) *Slots { return &Slots{size: size, free: size} }

// Size is how many there are.
func (s *Slots) Size() int { return s.size }

// take takes a slot; false when there is none. Only the agenda takes, but for Retake, and while it runs, slots are given back in
// its goroutine only: what it claims then depends on what has ended and not on who was quicker.
func (s *Slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 {
		return false
	}
	s.free--
	return true
}

func (s *Slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}

// Retake takes a slot again for a run that was granted to a claim in doubt; false when others have them all: then one too many is taken, until
// it is given back.
func (s *Slots) Retake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
	return s.free >= 0
}

// Full says whether there is no free slot.
func (s *Slots) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0
}

// Used is how many slots are taken.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.free
}
