package execjob

import (
	"os/exec"
	"syscall"
)

// endWithThread makes the kernel end the command, but not its children, when the thread that starts it
// ends: with this process.
func endWithThread(cmd *exec.Cmd, sig syscall.Signal) { cmd.SysProcAttr.Pdeathsig = sig }
