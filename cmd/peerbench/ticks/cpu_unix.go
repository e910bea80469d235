//go:build unix

package ticks

import (
	"syscall"
	"time"
)

// cpu is the CPU time that this process has taken, in seconds.
func cpu() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // never fails for oneself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
