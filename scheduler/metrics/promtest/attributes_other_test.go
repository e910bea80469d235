//go:build !linux

package promtest_test

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
