package jobs

import "errors"

// ErrTryTimeout is the cause of a try's context when the Timeout of the job's Retry has passed. The run goes on: it may have another try.
var ErrTryTimeout = errors.New("jobs: the timeout of one try passed")

// checkTryTimeout checks the timeout of each try, which Timeout of the job covers.
func (j Job) checkTryTimeout(f *faults) {
	const field = "retry.try_timeout"
	d := j.Retry.Timeout
	switch {
	case d == 0 || !checkDuration(f, field, d):
	case j.Retry.Max == 0:
		f.add(field, "%v is only used with retry.max above 0; set that, or use timeout, which ends the whole run", d)
	case j.Timeout > 0 && d >= j.Timeout:
		f.add(field, "%v is not below timeout, %v, which covers all tries; lower the one or raise the other", d, j.Timeout)
	}
}
