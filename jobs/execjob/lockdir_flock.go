//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package execjob

import (
	"os"
	"syscall"
)

// lockDir locks a directory until the file is closed, or the process ends. The error means that
// another process has the lock, or that the name is no directory's: in a directory that every user
// can write, another user may have put a named pipe there meanwhile.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: a directory that this package made
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
