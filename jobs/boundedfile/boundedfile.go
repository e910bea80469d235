// Package boundedfile reads files that other people and other programs may write.
//
// A read returns within [Within], takes no more memory than its limit, and reads nothing but a
// regular file: a named pipe, a device and a folder are refused before they are opened. The file
// system itself may hang, as a network's does; the call then returns with [ErrNoAnswer], and
// further calls for the same name are refused until the first one has come back.
//
// A descriptor that the process was started with (/dev/stdin, /dev/fd/N) may be a pipe: the parent
// process has chosen it. Its writer has as much time as it needs.
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Within bounds each call, but one for a descriptor that the process was started with.
const Within = 10 * time.Second

// Errors of files that are not read.
var (
	// ErrNotRegular is wrapped by the error of a name that is no regular file.
	ErrNotRegular = errors.New("no regular file")
	// ErrNoAnswer is wrapped by the error of a call that the file system did not answer within
	// Within.
	ErrNoAnswer = errors.New("does not answer")
)

// SizeError is the error of a file that is too large. No more than Limit bytes of it were held.
type SizeError struct {
	Size  int64 // as far as it is known, bytes; greater than Limit
	Limit int64 // bytes
}

// Error has both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the file has %d bytes, more than %d", e.Size, e.Limit)
}

// Read returns the content of a regular file of at most limit bytes. It follows symbolic links.
func Read(name string, limit int64) ([]byte, error) {
	return call(name, func() ([]byte, error) { return read(name, limit, os.Stat, 0) })
}

// ReadDirect is Read for a name that must not be a symbolic link.
func ReadDirect(name string, limit int64) ([]byte, error) {
	return call(name, func() ([]byte, error) { return read(name, limit, os.Lstat, noFollow) })
}

// Stat is os.Stat.
func Stat(name string) (fs.FileInfo, error) {
	return call(name, func() (fs.FileInfo, error) { return os.Stat(name) })
}

// Lstat is os.Lstat.
func Lstat(name string) (fs.FileInfo, error) {
	return call(name, func() (fs.FileInfo, error) { return os.Lstat(name) })
}

// ReadDir is os.ReadDir.
func ReadDir(name string) ([]fs.DirEntry, error) {
	return call(name, func() ([]fs.DirEntry, error) { return os.ReadDir(name) })
}

// Open opens a regular file for a caller that reads it in pieces. It follows symbolic links. Reads
// have no deadline.
func Open(name string) (*os.File, error) {
	return call(name, func() (*os.File, error) { return open(name, os.Stat, 0) })
}

func read(name string, limit int64, stat func(string) (fs.FileInfo, error), flags int) ([]byte, error) {
	f, err := open(name, stat, flags)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	//guard:file-size-bounded P8 a file of others that is too large is refused, and no part of it is taken for the whole
	if n := int64(len(data)); n > limit {
		if info, err := f.Stat(); err == nil {
			n = max(n, info.Size())
		}
		return nil, &SizeError{n, limit}
	}
	return data, nil
}

func noAnswer(name string, within time.Duration) error {
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w within %s", ErrNoAnswer, within)}
}

// open opens a regular file, without waiting for a writer.
func open(name string, stat func(string) (fs.FileInfo, error), flags int) (*os.File, error) {
	before, err := stat(name) // opening a device may do something
	if err == nil {
		err = check(name, before)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0) //nolint:gosec // G304: the package is for names from outside
	if err != nil {
		return nil, err
	}
	now, err := f.Stat() // another file may have taken the name
	if err == nil {
		err = check(name, now)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// check refuses a file that is not regular.
func check(name string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode.IsDir() {
		return &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	//guard:regular-files-only P8 a named pipe or a device in the place of a file is refused
	if !mode.IsRegular() && !inherited(name) {
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("is %s, and %w", kind(mode), ErrNotRegular)}
	}
	return nil
}

// kind names the kind of a file that is not regular.
func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "of another kind"
}

// inherited reports whether a name belongs to a descriptor that this process was started with.
func inherited(name string) bool {
	name = filepath.ToSlash(filepath.Clean(name))
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

// under holds the names of the calls that have not come back.
var under sync.Map

// call calls f, for at most Within. At most one call for a name is left behind, however many calls
// for the name follow.
func call[T any](name string, f func() (T, error)) (T, error) { return callWithin(name, Within, f) }

func callWithin[T any](name string, within time.Duration, f func() (T, error)) (result T, err error) {
	if inherited(name) {
		return f()
	}
	done := make(chan struct{})
	earlier, running := under.LoadOrStore(name, done)
	timer := time.NewTimer(within)
	defer timer.Stop()
	for running { // another caller's call, or a call that was left behind
		select {
		case <-earlier.(chan struct{}):
			earlier, running = under.LoadOrStore(name, done)
		case <-timer.C:
			return result, noAnswer(name, within)
		}
	}
	var got T
	var failed error
	go func() {
		defer close(done)
		defer under.Delete(name)
		got, failed = f()
	}()
	select {
	case <-done:
		return got, failed
	case <-timer.C:
		return result, noAnswer(name, within)
	}
}
