//go:build !linux

package locking

import "time"

// Slept returns how long this machine has been suspended since it booted. It
// is not known here, so it is constant: a suspended machine learns of a lost
// lease when its timers run again, or from the store.
func Slept() time.Duration { return 1 }
