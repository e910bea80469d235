//go:build unix && !linux

package execjob

import (
	"os/exec"
	"syscall"
)

// endWithThread does nothing: this system cannot end a process with another one.
func endWithThread(*exec.Cmd, syscall.Signal) {}
