package cli

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

	"github.com/escapement/escapement/internal/boundedfile"
)

// errFileThere is returned for a backup that would replace a file.
var errFileThere = errors.New("there is a file already; name another one, or replace it with --force")

// backupTarget is where a backup goes, behind symbolic links. A device or a pipe gets the backup as
// it is written; a file is replaced when the backup is complete.
type backupTarget struct {
	path    string
	through bool // a device or a pipe
	pipe    bool
}

// findBackupTarget looks where a backup goes. An error that wraps errFileThere: a file is there,
// and force is not set.
func findBackupTarget(name string, force bool) (backupTarget, error) {
	info, err := boundedfile.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		to, err := linkEnd(name)
		return backupTarget{path: to}, err
	}
	if err != nil {
		return backupTarget{}, err
	}
	mode := info.Mode()
	pipe := mode&fs.ModeNamedPipe != 0
	switch {
	case pipe, mode&fs.ModeDevice != 0:
		return backupTarget{path: name, through: true, pipe: pipe}, nil
	case !mode.IsRegular():
		return backupTarget{}, fmt.Errorf("%s is neither a file nor a device nor a pipe", name)
	case !force:
		return backupTarget{}, fmt.Errorf("%s: %w", name, errFileThere)
	}
	to, err := filepath.EvalSymlinks(name)
	return backupTarget{path: to}, err
}

// maxLinks bounds the symbolic links of a name, as the kernel does.
const maxLinks = 40

// linkEnd is the name of a file that is not there yet, behind the symbolic links that lead to it.
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

// write has a backup written. What write has left of a file that is not complete, is removed.
func (t backupTarget) write(ctx context.Context, write func(io.Writer) error) error {
	if t.through {
		return t.writeThrough(ctx, write)
	}
	temp, err := os.CreateTemp(filepath.Dir(t.path), filepath.Base(t.path)+".*") // its owner's only
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(temp.Name()) // there is none when it was renamed
	if err = errors.Join(write(temp), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), t.path); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// writeThrough writes to a device or a pipe, until ctx ends. A pipe that nobody reads is refused: a
// writer would wait for ever.
func (t backupTarget) writeThrough(ctx context.Context, write func(io.Writer) error) error {
	flags := os.O_WRONLY
	if t.pipe {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(t.path, flags, 0)
	if t.pipe && errors.Is(err, syscall.ENXIO) {
		err = fmt.Errorf("%s: nobody reads this pipe; start its reader first", t.path)
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) }) // a pipe has one
	defer stop()
	return errors.Join(write(f), f.Close())
}
