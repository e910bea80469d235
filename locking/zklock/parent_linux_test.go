package zklock_test

import "syscall"

// withParent makes the kernel end a child when this process dies, so that a test run that is killed leaves nothing behind.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
