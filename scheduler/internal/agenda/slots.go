package agenda

import (
	"sync"
)

// Slots counts what the node may still take on: a claim takes one before it is sent, and the run
// keeps it until its outcome is settled, so nothing behind a claim can queue without bound.
//
// What waits for a master of a Cluster that does not answer lends its slots to others meanwhile. A claim reclaims its slot before
// its answer is looked at, whether one is free or not.
type Slots struct {
	size int

	mu   sync.Mutex
	free int // below 0: so many were reclaimed that others have
	lent int
}

// NewSlots makes so many.
func NewSlots(size int) *Slots { return &Slots{size: size, free: size} }

// take takes a slot; false when there is none. Only the agenda takes, and while it runs, slots are given back in
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

func (s *Slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
}

// lend gives slots away for a time.
func (s *Slots) lend(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent += n
	s.free += n
}

// Reclaim takes a lent slot back; false when others have them all: then one too many is taken until it is given.
func (s *Slots) Reclaim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent--
	s.free--
	return s.free >= 0
}

// forgo gives lent slots away for good.
func (s *Slots) forgo(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent -= n
}

// Full says whether there is no free slot.
func (s *Slots) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0
}

// Used is how many slots are taken or lent.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.free + s.lent
}
