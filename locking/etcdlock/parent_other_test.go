//go:build unix && !linux

package etcdlock_test

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
