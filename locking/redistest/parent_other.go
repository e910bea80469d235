//go:build unix && !linux

package redistest

import "os/exec"

// endWithParent does nothing: only Linux has a signal for it.
func endWithParent(*exec.Cmd) {}
