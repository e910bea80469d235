//go:build unix && !linux

package sqltest_test

import "syscall"

func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: account}
}
