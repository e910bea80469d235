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
// A run by hand may carry a payload, which is JSON: [Typed] makes a function of one that takes
// the payload decoded, and refuses what does not fit with the name of the field.
//
// A job is filled with [Job.WithDefaults] and then checked with [Job.Validate]; the
// registry does both, and [Registry.Check] looks at how the jobs go together. A setting
// that would do nothing is refused: one that belongs to a policy the job does not have.
//
// In place of a schedule a job may have [Job.After], another job's name: it runs once for
// each tick of that one that ended well, with the same tick.
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
//   - H in the place of a value: one that the job's name decides, see below.
//
// As in every cron, when both day fields are restricted a day matches if either does.
//
// H spreads the jobs of a namespace over time. It stands for a value that is hashed from
// the job's name and the field, the same on every node and for ever: H is any value of the
// field, H(9-16) one of that range, H/15 every 15th beginning anywhere below the 15th, and
// H(0-29)/10 that in a range. In the day of the month it takes 1 to 28 only, the days that
// every month has. "H * * * *" in five fields runs on second 0. H/1 is every value, and
// not one as in Jenkins. [ParseScheduleFor] takes the name, [Schedule.Resolved] tells what
// H stands for.
//
// Daylight saving. A schedule whose minute or hour field has a star ("*", "*/15") or an H
// with a step ("H/15") is an interval one: it fires whenever the wall clock matches, so it
// has nothing in the hour that is left out and runs through the repeated hour twice. Any
// other schedule names fixed times, H without a step among them, and each fires at the
// first instant at which the wall clock has reached it: in the gap that is the first
// instant after the gap, where several become one tick, in the repeated hour the first of
// the two. [Schedule.Note] tells such ticks from the others, [Schedule.Prev] is the mirror
// of [Schedule.Next], and [Schedule.Count] and [Schedule.Between] agree with both.
//
// # A run
//
// A run is one granted execution of a tick. Its token only grows from one granted run of
// the job to the next; hand it to whatever the run writes to, so that a stale run can be
// refused there. [Run.Logger] has the facts of the run in every line, and what is written to
// [Run.Output] is kept with the run. The function's context ends when the run must stop, and
// [context.Cause] says why: [ErrTimeout] for the job's own timeout, [ErrCancelled] for an
// operator's word, [ErrReplaced] for a newer tick; other causes come from the scheduler and
// the lock. The [Outcome] is what the ledger keeps.
//
// With a [Retry] a failed function is called again inside the run: same lease, same token,
// a [Run] of its own that says which try it is. [Permanent] marks an error that no further
// try can help. A further attempt is something else: another run of the same tick, with a
// larger token, after a crash or at an operator's wish.
package jobs
