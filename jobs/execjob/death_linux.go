package execjob

import (
	"os/exec"
	"syscall"
)

// endWithThread makes the kernel end the command, but nothing that it started, when the thread that starts it ends: with this process.
func endWithThread(cmd *exec.Cmd, sig syscall.Signal) { cmd.SysProcAttr.Pdeathsig = sig }
