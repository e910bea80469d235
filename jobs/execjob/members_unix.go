//go:build unix && !linux

package execjob

// onlyDead needs a process table to look at, which this system has not in its files: a
// member that has ended and was not reaped counts until the grace is over.
func onlyDead(int) bool { return false }
