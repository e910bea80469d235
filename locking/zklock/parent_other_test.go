//go:build unix && !linux

package zklock_test

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
