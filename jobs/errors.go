package jobs

import (
	"errors"
)

// Permanent marks an error after which a retry cannot succeed: whatever the job's [Retry] is, the
// function is not called again in this run. The text is unchanged, and the result wraps err.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether err, or an error that it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}

type permanent struct{ error }

// Unwrap returns the marked error.
func (p *permanent) Unwrap() error { return p.error }

// NodeFault marks the error of a function that could not begin its work for a reason of this
// machine: no more open files, processes or memory. The run is given to another node, as if it had
// not been called, and this node takes no further runs for a while. The text is unchanged, and the
// result wraps err. NodeFault(nil) is nil.
//
// A function that has done anything returns a plain error: a run with a marked error is run again
// without counting as a try.
func NodeFault(err error) error {
	if err == nil {
		return nil
	}
	return &nodeFault{err}
}

// IsNodeFault reports whether err, or an error that it wraps, was marked by NodeFault.
func IsNodeFault(err error) bool {
	var f *nodeFault
	return errors.As(err, &f)
}

type nodeFault struct{ error }

// Unwrap returns the marked error.
func (f *nodeFault) Unwrap() error { return f.error }
