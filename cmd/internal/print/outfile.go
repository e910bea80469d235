package print

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs/boundedfile"
)

// ErrFileThere is returned for output that would replace a file.
var ErrFileThere = errors.New("there is a file already; name another one")

// OutFile is where a command's output goes, behind symbolic links. A device or a pipe gets it as it
// is written; a file appears when it is complete.
type OutFile struct {
	path    string
	replace bool // a file that is there
	through bool // a device or a pipe
	pipe    bool
}

// FindOutFile looks where output goes. An error that wraps ErrFileThere: a file is there, and
// replace is not set.
func FindOutFile(name string, replace bool) (OutFile, error) {
	info, err := boundedfile.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		to, err := linkEnd(name)
		return OutFile{path: to, replace: replace}, err
	}
	if err != nil {
		return OutFile{}, err
	}
	mode := info.Mode()
	pipe := mode&fs.ModeNamedPipe != 0
	switch {
	case pipe, mode&fs.ModeDevice != 0:
		return OutFile{path: name, through: true, pipe: pipe}, nil
	case !mode.IsRegular():
		return OutFile{}, fmt.Errorf("%s is neither a file nor a device nor a pipe", name)
	case !replace:
		return OutFile{}, fmt.Errorf("%s: %w", name, ErrFileThere)
	}
	to, err := filepath.EvalSymlinks(name)
	return OutFile{path: to, replace: replace}, err
}

// maxLinks bounds the symbolic links of a name, as the kernel does.
const maxLinks = 40

// linkEnd returns the name of a new file, behind the symbolic links that lead to it.
func linkEnd(name string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(name)
		if err != nil { // no link
			return name, nil //nolint:nilerr // the name is where the links end
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", &fs.PathError{Op: "write", Path: name, Err: syscall.ELOOP}
}

// Write has the file written, which only its owner can read. An incomplete file is removed.
func (t OutFile) Write(ctx context.Context, write func(io.Writer) error) error {
	if t.through {
		return t.writeThrough(ctx, write)
	}
	temp, err := os.CreateTemp(filepath.Dir(t.path), filepath.Base(t.path)+".*") // its owner's only
	if err != nil {
		return t.failed(err)
	}
	defer os.Remove(temp.Name()) // there is none when it was renamed
	if err = errors.Join(write(temp), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if !t.replace { // another command may have made it meanwhile
		claim, err := t.create(0o600)
		if err != nil {
			return err
		}
		_ = claim.Close() // it is empty
	}
	return t.failed(os.Rename(temp.Name(), t.path))
}

// WriteNew has a new file written in its place, with the given mode: an incomplete file stays.
func (t OutFile) WriteNew(mode fs.FileMode, write func(io.Writer) error) error {
	if t.through {
		return t.writeThrough(context.Background(), write)
	}
	f, err := t.create(mode)
	if err != nil {
		return err
	}
	return t.failed(errors.Join(write(f), f.Close()))
}

// create makes the file, which must not be there.
func (t OutFile) create(mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(t.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %w", t.path, ErrFileThere)
	}
	return f, t.failed(err)
}

// failed is the error of a call for the file.
func (t OutFile) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", t.path, PlainPathError(err))
}

// writeThrough writes to a device or a pipe, until ctx ends. A pipe without a reader is refused: a
// writer would wait for ever.
func (t OutFile) writeThrough(ctx context.Context, write func(io.Writer) error) error {
	flags := os.O_WRONLY
	if t.pipe {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(t.path, flags, 0)
	if t.pipe && errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%s: nobody reads this pipe; start its reader first", t.path)
	}
	if err != nil {
		return t.failed(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) }) // a pipe has one
	defer stop()
	return errors.Join(write(f), f.Close())
}
