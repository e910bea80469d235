//go:build !linux

package locking

import "time"

// Slept returns a constant: this system does not report how long the machine was suspended. A
// suspended machine detects a lost lease when its timers run again, or by an answer of the store.
func Slept() time.Duration { return 1 }
