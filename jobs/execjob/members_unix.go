//go:build unix && !linux

package execjob

// onlyDead returns false: this system has no /proc. A member that has ended and was not reaped counts
// as alive until the grace is over.
func onlyDead(int) bool { return false }
