package jobs

import "errors"

// Permanent marks an error that no retry can help: whatever the job's [Retry] says, the
// function is not called again in this run. The text stays as it is, and errors.Is and
// errors.As look through the mark. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether err was marked by Permanent, or wraps or joins one that was.
func IsPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}

type permanent struct{ error }

// Unwrap returns the error that was marked.
func (p *permanent) Unwrap() error { return p.error }
