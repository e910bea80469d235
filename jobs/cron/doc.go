// Package cron is the language of schedules: it parses an expression to a [Schedule], computes ticks, and describes both in words. It uses
// no clock and no network.
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
// [Bounds] are the days and instants without ticks, and a jitter. [Schedule.String] has them behind the fields, and [ParseFor] reads
// them there.
//
// When both day fields are restricted, a day matches if either does; a field is restricted unless an element of it is a star (or ?)
// without a step. That is robfig/cron's rule. crontab(5) of Vixie cron and cronie takes a field that begins with a star for unrestricted,
// with a step too: [Schedule.CrontabWords] names a schedule that has other days there.
//
// H spreads the jobs of a namespace over time. Its value is hashed from the job's name and the field, and is the same on
// every node and for ever: H is a value of the field, H(9-16) a value of that range, H/15 every 15th value from a hashed
// start below 15, and H(0-29)/10 the same in a range. In the day of month H is 1 to 28, the days of every month.
// "H * * * *" in five fields runs on second 0. H/1 is every value; in Jenkins it is one. [ParseFor] takes the
// name, [Schedule.Resolved] returns the values.
//
// Daylight saving. A schedule whose minute or hour field has a star ("*", "*/15") or an H with a step ("H/15") is an
// interval: it fires whenever the wall clock matches, so never in the hour that is left out, and twice in the repeated
// hour. Any other schedule has fixed times, each of which fires at the first instant at which the wall clock has reached
// it. For times in the hour that is left out that is the first instant after it, one tick for all of them; in the
// repeated hour it is the first of the two. [Schedule.Note] marks such ticks. [Schedule.Prev] mirrors [Schedule.Next],
// and [Schedule.Count] and [Schedule.Between] agree with both.
package cron
