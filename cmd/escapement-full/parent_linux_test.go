package main

import "syscall"

// endWithParent makes the kernel end a child when this process dies, so that a test run that is killed leaves nothing behind.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
