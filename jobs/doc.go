// Package jobs defines jobs: a [Job] with its policies, the [Registry] of a program, the [Run] that
// a job's function gets, and the [Schedule] with its ticks. It uses no network, and no clock except
// in [Job.Validate]: a list of days that leaves no tick within five years from now is refused.
//
// # A job
//
// A job is a name, a schedule and a function. Everything else has a useful zero value:
//
//	reg := jobs.NewRegistry()
//	reg.MustAdd(jobs.Job{
//		Name:     "settle-orders",
//		Schedule: "*/5 * * * *",
//		Func: func(ctx context.Context, run *jobs.Run) error {
//			return settle(ctx, run.Tick(), run.Token())
//		},
//	})
//
// A manual run may have a payload, in JSON. [Typed] decodes the payload for the job's function, and
// refuses a payload of another type, with the name of the field.
//
// [Job.WithDefaults] fills a job, and [Job.Validate] checks it; the registry does both.
// [Registry.Check] checks the jobs together. A setting without an effect is refused, such as
// RerunMax without OnCrashRerun.
//
// Instead of a schedule a job may have [Job.After], names of upstream jobs: the job runs once for
// each tick that all upstreams have ended as [Job.When] requires, with the same tick. An upstream's
// [Run.SetResult] sets its payload.
//
// # A schedule
//
// Package jobs/cron has the language of schedules, and [Schedule], which computes ticks.
// [Job.Except], [Job.Only], [Job.StartAt] and [Job.EndAt] bound the ticks: instants beyond them are
// no ticks, are not caught up, and have no row in the history. [Job.Jitter] then moves all ticks by
// one offset, which the job's name decides.
//
// # A run
//
// A run is one granted execution of a tick. Each run has a fencing token ([Run.Token]), larger than
// the tokens of all earlier runs of the job. Send the token with each write, so that a guard can
// refuse the write of an earlier run that goes on; package locking/fence has guards.
//
// [Run.Logger] adds the run's job, tick, id and token to each line. [Run.Output] is stored with the
// run. The function's context ends when the run must stop, and [context.Cause] is the reason:
// [ErrTimeout] after the job's timeout, [ErrCancelled] for an operator's cancel, [ErrReplaced] for
// a newer tick; other causes come from the scheduler and the lease. The ledger records the
// [Outcome].
//
// With a [Retry] a failed function is called again inside the run: a further try, with the same
// lease and token. An error that is [Permanent] ends the tries. A try may have a time of its own:
// then its context ends with [ErrTryTimeout], and the run goes on. A further attempt is another run
// of the same tick, with a larger token, after a crash, by an operator's rerun, or as the next try
// of a job with [RetryOtherNode].
package jobs
