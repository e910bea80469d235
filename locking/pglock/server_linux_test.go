package pglock_test

import "syscall"

// attributes makes the kernel end the server when this process dies, so that a
// test run that is killed leaves nothing behind.
func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: account, Pdeathsig: syscall.SIGQUIT}
}
