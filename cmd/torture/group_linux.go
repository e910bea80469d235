package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group of its own, and makes the kernel end it when this
// process dies.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
