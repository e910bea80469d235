package execjob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/escapement/escapement/jobs"
)

// maxResultFile bounds the file of a result, in bytes: a JSON text may be written with blanks, which are not kept.
const maxResultFile = 64 << 10

// keepResult makes the content of the file the run's result. A command that wrote none has none. A result that cannot be kept
// does not fail the run: the log and the output say why.
func keepResult(path string, run *jobs.Run) {
	data, err := readResult(path)
	if err == nil && len(data) > 0 {
		err = run.SetResult(data)
	}
	if err != nil {
		run.Logger().Warn("the command's result was not kept", "error", err)
		fmt.Fprintln(run.Output(), "escapement: the result was not kept:", err)
	}
}

func readResult(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the node has made the name; a pipe is opened without waiting
	switch {
	case os.IsNotExist(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a pipe would be read for ever
		return nil, errors.New("result: is no file")
	case info.Size() > maxResultFile:
		return nil, fmt.Errorf("result: the file has %d bytes, more than %d; store it elsewhere and pass its address", info.Size(), maxResultFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxResultFile))
	return bytes.TrimSpace(data), err
}
