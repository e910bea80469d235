// Package jobs holds the words of scheduled work: a [Job] with its policies, the
// [Registry] a program fills, the [Run] a job's function is given, and the [Schedule]
// that says when the ticks are. It talks to nothing: no network, no clock.
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
// A job is filled with [Job.WithDefaults] and then checked with [Job.Validate]; the
// registry does both. A setting that this version does not carry out is refused with
// the words "is not there yet", never ignored.
//
// # A schedule
//
// A schedule is a pure function: [Schedule.Next] of an instant is the same on every
// node and in every year. Ticks are whole milliseconds in UTC.
//
//   - 5 fields (minute hour day-of-month month day-of-week) or 6 with seconds first.
//   - @yearly @annually @monthly @weekly @daily @midnight @hourly.
//   - "@every 90s": the instants whose distance from 1970-01-01T00:00:00Z is a multiple
//     of 90 s, so that all nodes agree on them. A time zone has no effect on it.
//   - The zone is the job's time zone, or a CRON_TZ= (or TZ=) prefix; both only if equal.
//     Zone data come from the system, else from the copy embedded in the program.
//
// As in every cron, when both day fields are restricted a day matches if either does.
//
// Daylight saving. A schedule whose minute or hour field has a star ("*", "*/15") is an
// interval one: it fires whenever the wall clock matches, so it has nothing in the hour
// that is left out and runs through the repeated hour twice. Any other schedule names
// fixed times, and each fires at the first instant at which the wall clock has reached
// it: in the gap that is the first instant after the gap, in the repeated hour the first
// of the two.
//
// # A run
//
// A run is one granted execution of a tick. Its token only grows from one granted run of
// the job to the next; hand it to whatever the run writes to, so that a stale run can be
// refused there. The function's context ends when the run must stop, and
// [context.Cause] says why: [ErrTimeout] for the job's own timeout, other causes come
// from the scheduler and the lock. The [Outcome] is what the ledger keeps.
package jobs
