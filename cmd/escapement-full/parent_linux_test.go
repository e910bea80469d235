package main

import "syscall"

// endWithParent makes the kernel end a child with this process, so that a killed test run leaves
// nothing.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
