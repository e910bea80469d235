package jobs

import "errors"

// ErrTryTimeout is the cause of a try's context when the Timeout of the job's Retry has passed. The run goes on: it may have another try.
var ErrTryTimeout = errors.New("jobs: the timeout of one try passed")
