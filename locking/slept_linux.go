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

// Slept returns how long this machine has been suspended since it booted. The result is never 0, so
// that 0 in a Grant means "not read". Where the system does not report the time, Slept is constant.
//
// A suspension stops timers and the monotonic clock of time.Now, but not the store, where leases lapse
// meanwhile. The clocks are read from the kernel, so the result also holds in a testing/synctest bubble.
func Slept() time.Duration {
	now := time.Now()
	return machine.at(time.Duration(now.UnixNano()-machine.began.UnixNano()) - now.Sub(machine.began))
}

var machine = sleptReader{began: time.Now(), read: readSlept}

// sleptReader caches the time that the machine was suspended. A reading takes three system calls, and each
// lease needs several, so it is repeated only when the wall clock and the monotonic clock have diverged: after
// a suspension, or when the wall clock was set.
type sleptReader struct {
	began time.Time
	read  func() time.Duration
	last  atomic.Pointer[sleptReading]
}

// sleptReading is a reading, and how far the wall clock was then ahead of the monotonic one, since began.
type sleptReading struct{ ahead, total time.Duration }

// clockNoise is how far the clocks may diverge without a new reading: more than some seconds of slewing, far
// less than suspendNoise.
const clockNoise = time.Millisecond

func (s *sleptReader) at(ahead time.Duration) time.Duration {
	if l := s.last.Load(); l != nil && (ahead-l.ahead).Abs() < clockNoise {
		return l.total
	}
	l := &sleptReading{ahead, s.read()}
	s.last.Store(l)
	return l.total
}

func readSlept() time.Duration { return sleptBy(clock) }

// sleptTries bounds the readings of the clocks for one result.
const sleptTries = 10

// sleptBy reads both clocks until no delay lay between the readings. A delay makes the result too small, so
// the largest one is kept.
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
		if mono-before < clockNoise {
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
