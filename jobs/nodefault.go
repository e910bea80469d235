package jobs

import "errors"

// NodeFault marks the error of a function that could not begin its work for a reason of this
// machine: no more open files, processes or memory. The run is given to another node, as if it had
// not been called, and this node takes no further runs for a while. The text is unchanged, and the
// result wraps err. NodeFault(nil) is nil.
//
// A function that has done anything returns a plain error: what is marked here is run again without
// counting as a try.
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
