package httpjob

import (
	"bytes"
	"fmt"

	"github.com/escapement/escapement/jobs"
)

// maxResultBody bounds the body of a result, in bytes: a JSON text may be written with blanks, which are not kept.
const maxResultBody = 64 << 10

// beginning keeps the first bytes written to it, and counts all.
type beginning struct {
	text  []byte
	total int64
}

// Write keeps the bytes that fit. It never fails.
func (b *beginning) Write(p []byte) (int, error) {
	b.total += int64(len(p))
	b.text = append(b.text, p[:min(len(p), maxResultBody-len(b.text))]...)
	return len(p), nil
}

// keep makes the body the run's result; a blank body is none. A result that cannot be kept does not
// fail the run: the log and the output give the reason.
func (b *beginning) keep(run *jobs.Run) {
	data, err := bytes.TrimSpace(b.text), error(nil)
	switch {
	case b.total > maxResultBody:
		err = fmt.Errorf("result: the body has %d bytes, more than %d; store it elsewhere and pass its address", b.total, maxResultBody)
	case len(data) > 0:
		err = run.SetResult(data)
	}
	if err != nil {
		run.Logger().Warn("the answer's result was not kept", "error", err)
		fmt.Fprintln(run.Output(), "\nescapement: the result was not kept:", err)
	}
}
