package redistest

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the server when this process dies, so
// that a test run that is killed leaves nothing behind.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
