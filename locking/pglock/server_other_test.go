//go:build unix && !linux

package pglock_test

import "syscall"

func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: account}
}
