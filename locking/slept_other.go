//go:build !linux

package locking

import "time"

// Slept returns a constant: this system does not tell how long the machine was suspended. A suspended machine
// learns of a lost lease when its timers run again, or from the store.
func Slept() time.Duration { return 1 }
