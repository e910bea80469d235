package execjob

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
)

// maxResultFile bounds the file of a result, in bytes: a JSON text may be written with blanks, which are not kept.
const maxResultFile = 64 << 10

// keepResult makes the content of the file the run's result. A command that wrote none has none. A
// result that cannot be kept does not fail the run: the log and the output give the reason.
func keepResult(path string, run *jobs.Run) {
	data, err := readResult(path)
	if err == nil && len(data) > 0 {
		err = run.SetResult(data)
	}
	if err != nil {
		notKept(run, "result", err)
	}
}

func readResult(path string) ([]byte, error) {
	data, err := boundedfile.ReadDirect(path, maxResultFile)
	switch size := new(boundedfile.SizeError); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &size):
		return nil, fmt.Errorf("%w; store it elsewhere and pass its address", size)
	case err != nil:
		return nil, err
	}
	return bytes.TrimSpace(data), nil
}
