package locking

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Clock numbers of clock_gettime(2).
const (
	clockMonotonic = 1 // stands still while the machine is suspended
	clockBoottime  = 7 // does not
)

// Slept returns how long this machine has been suspended since it booted. It
// is never zero, so a zero in a Grant means "not read". Where the system does
// not tell, it is constant.
//
// Timers and time.Now do not see a suspension; the store does, and lets the
// lease lapse meanwhile. Both clocks are read straight from the kernel, so the
// difference also holds in a testing/synctest bubble, whose time is its own.
func Slept() time.Duration {
	now := time.Now()
	return machine.at(time.Duration(now.UnixNano()-machine.began.UnixNano()) - now.Sub(machine.began))
}

var machine = suspension{began: time.Now(), read: readSlept}

// suspension is what is known of the machine's sleep. To read it takes three calls
// of the kernel, and it is asked for several times for each lease, so it is read
// anew only when the wall clock and the monotonic one have come apart, as they do
// by each suspension; or because the wall clock was set.
type suspension struct {
	began time.Time
	read  func() time.Duration
	last  atomic.Pointer[slept]
}

// slept is what was read when the wall clock was ahead of the monotonic one by so
// much more than at the beginning.
type slept struct{ ahead, total time.Duration }

// apart is how far the clocks may come apart before that is read anew: some
// seconds' worth of a clock being slewed, and far less than sleepNoise.
const apart = time.Millisecond

func (s *suspension) at(ahead time.Duration) time.Duration {
	if l := s.last.Load(); l != nil && (ahead-l.ahead).Abs() < apart {
		return l.total
	}
	l := &slept{ahead, s.read()}
	s.last.Store(l)
	return l.total
}

func readSlept() time.Duration { return sleptBy(clock) }

// sleptTries is how often the clocks are read for one answer at most.
const sleptTries = 10

// sleptBy reads both clocks until nothing has stood still in between: what is read later is too late by that, and makes
// the sleep too short, for as long as it is kept. So the longest of some is the nearest.
func sleptBy(clock func(id uintptr) (time.Duration, bool)) time.Duration {
	longest := time.Duration(1)
	for range sleptTries {
		before, ok1 := clock(clockMonotonic)
		boot, ok2 := clock(clockBoottime)
		mono, ok3 := clock(clockMonotonic)
		if !ok1 || !ok2 || !ok3 {
			return 1
		}
		longest = max(longest, boot-mono)
		if mono-before < apart {
			break
		}
	}
	return longest
}

func clock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // G103: the kernel fills in ts, which lives until the call returns
	return time.Duration(ts.Nano()), errno == 0
}
