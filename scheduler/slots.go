package scheduler

import "sync/atomic"

// slots counts what the node may still take on: a claim takes one before it is sent, and the run
// keeps it until its outcome is settled, so nothing behind a claim can queue without bound.
type slots struct {
	size int
	free atomic.Int64
}

func newSlots(size int) *slots {
	s := &slots{size: size}
	s.free.Store(int64(size))
	return s
}

// take takes a slot; false when there is none. Only the engine takes, and while it runs, slots are given back in
// its goroutine only: what it claims then depends on what has ended and not on who was quicker.
func (s *slots) take() bool {
	if s.free.Load() <= 0 {
		return false
	}
	s.free.Add(-1)
	return true
}

func (s *slots) give() { s.free.Add(1) }

// used is how many slots are taken.
func (s *slots) used() int { return s.size - int(s.free.Load()) }
