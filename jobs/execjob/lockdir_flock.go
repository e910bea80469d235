//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package execjob

import (
	"os"
	"syscall"
)

// lockDir locks a directory until the file is closed, or the process ends. The error says that
// another process has the lock.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path) //nolint:gosec // G304: a directory of runs
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
