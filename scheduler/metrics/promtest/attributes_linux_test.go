package promtest_test

import "syscall"

// attributes makes the kernel end a process when this one dies, so that a test run that is killed
// leaves nothing behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
