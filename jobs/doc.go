// Package jobs defines jobs: a [Job] with its policies, the [Registry] of a program, the [Run] that a job's function
// gets, and the [Schedule] with its ticks. It uses no network, and no clock except in [Job.Validate]:
// a list of days that leaves no tick within five years from now is refused.
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
// A run by hand may have a payload, in JSON. [Typed] decodes it for the job's function, and refuses one that does not
// fit, with the name of the field.
//
// [Job.WithDefaults] fills a job, and [Job.Validate] checks it; the registry does both. [Registry.Check] checks the
// jobs together. A setting without an effect is refused, such as one of a policy that the job does not have.
//
// Instead of a schedule a job may have [Job.After], names of other jobs: it runs once for each tick that all of them have ended
// as [Job.When] says, with the same tick. [Run.SetResult] gives it a payload.
//
// # A schedule
//
// A schedule is a pure function: [Schedule.Next] of an instant is the same on every node. Ticks are whole milliseconds
// in UTC.
//
//   - 5 fields (minute hour day-of-month month day-of-week) or 6 with seconds first.
//     Names of months and days are their first three letters, or in full; letters may be in any case.
//   - @yearly @annually @monthly @weekly @daily @midnight @hourly.
//   - "@every 90s": the instants whose distance from 1970-01-01T00:00:00Z is a multiple
//     of 90 s, so that all nodes agree on them. A time zone has no effect on it.
//   - The zone is the job's time zone, or a CRON_TZ= (or TZ=) prefix; both only if equal.
//     Zone data come from the system, else from the copy embedded in the program.
//   - H instead of a value: the job's name decides the value, see below.
//
// Days that depend on the month: in the day of month L is the last day, L-3 the third before it, 15W the weekday nearest to the
// 15th in the same month (the 14th when that is a Saturday, the 16th when it is a Sunday) and LW the last weekday; in the day of week
// 5#2 or FRI#2 is the second Friday and 5L or FRIL the last one. They may be elements of a list. A month without the day, such as 31W
// in June, has no tick.
//
// [Job.Except], [Job.Only], [Job.StartAt] and [Job.EndAt] bound the ticks. What they leave out is no tick: it is not caught up, and
// has no row in the history. [Job.Jitter] then moves all ticks by one offset, which the job's name decides. [Schedule.String] has these
// settings behind the fields, and [ParseScheduleFor] reads them there.
//
// When both day fields are restricted, a day matches if either does; a field is restricted unless an element of it is a star (or ?)
// without a step. That is robfig/cron's rule. crontab(5) of Vixie cron and cronie takes a field that begins with a star for unrestricted,
// with a step too: [Schedule.CrontabWords] names a schedule that has other days there.
//
// H spreads the jobs of a namespace over time. Its value is hashed from the job's name and the field, and is the same on
// every node and for ever: H is a value of the field, H(9-16) a value of that range, H/15 every 15th value from a hashed
// start below 15, and H(0-29)/10 the same in a range. In the day of month H is 1 to 28, the days of every month.
// "H * * * *" in five fields runs on second 0. H/1 is every value; in Jenkins it is one. [ParseScheduleFor] takes the
// name, [Schedule.Resolved] returns the values.
//
// Daylight saving. A schedule whose minute or hour field has a star ("*", "*/15") or an H with a step ("H/15") is an
// interval: it fires whenever the wall clock matches, so never in the hour that is left out, and twice in the repeated
// hour. Any other schedule has fixed times, each of which fires at the first instant at which the wall clock has reached
// it. For times in the hour that is left out that is the first instant after it, one tick for all of them; in the
// repeated hour it is the first of the two. [Schedule.Note] marks such ticks. [Schedule.Prev] mirrors [Schedule.Next],
// and [Schedule.Count] and [Schedule.Between] agree with both.
//
// # A run
//
// A run is one granted execution of a tick. Each run has a fencing token ([Run.Token]), larger than those of all earlier
// runs of the job. Send it with each write, so that a guard can refuse the write of an earlier run that goes on; package
// locking/fence has guards.
//
// [Run.Logger] adds the run's job, tick, id and token to each line. [Run.Output] is stored with the run. The function's
// context ends when the run must stop, and [context.Cause] is the reason: [ErrTimeout] after the job's timeout,
// [ErrCancelled] for an operator's cancel, [ErrReplaced] for a newer tick; other causes come from the scheduler and the
// lease. The ledger records the [Outcome].
//
// With a [Retry] a failed function is called again inside the run: a further try, with the same lease and token. An
// error that is [Permanent] ends the tries. A try may have a time of its own: then its context ends with [ErrTryTimeout], and the run goes on. A further attempt is another run of the same tick, with a larger token, after
// a crash, by an operator's rerun, or as the next try of a job with [RetryOtherNode].
package jobs
