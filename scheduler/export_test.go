package scheduler

// RetryWait is for tests that look from outside.
var RetryWait = retryWait
