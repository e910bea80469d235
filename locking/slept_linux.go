package locking

import (
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
	boot, ok1 := clock(clockBoottime)
	mono, ok2 := clock(clockMonotonic)
	if !ok1 || !ok2 || boot <= mono {
		return 1
	}
	return boot - mono
}

func clock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // G103: the kernel fills in ts, which lives until the call returns
	return time.Duration(ts.Nano()), errno == 0
}
