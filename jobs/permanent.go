package jobs

import "errors"

// Permanent marks an error after which a retry cannot succeed: whatever the job's [Retry] is, the function is not called
// again in this run. The text is unchanged, and the result wraps err. Permanent(nil) is nil.
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
