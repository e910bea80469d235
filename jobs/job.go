package jobs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// What a job takes where it names nothing else.
const (
	// DefaultTTL is the lease time.
	DefaultTTL = 15 * time.Second
	// DefaultTimeZone is the zone a schedule is read in.
	DefaultTimeZone = "UTC"
	// DefaultCatchUpMax is how many missed ticks catch_up all makes up for.
	DefaultCatchUpMax = 10
	// DefaultRerunMax is how often on_crash rerun runs a tick again.
	DefaultRerunMax = 3
	// DefaultBackoff is the wait before the first retry.
	DefaultBackoff = time.Second
	// DefaultMaxBackoff is the longest wait before a retry.
	DefaultMaxBackoff = time.Minute
)

// Func is what a job does at a tick. It must return soon after ctx ends;
// context.Cause(ctx) says why it ended. A returned error settles the run as failed, or is
// followed by another try if the job has a [Retry] and the error is not [Permanent].
type Func func(ctx context.Context, run *Run) error

// Job is a named piece of work with a schedule, policies and a function. Durations are
// whole milliseconds. A setting that only means something under a policy, such as
// CatchUpMax under CatchUpAll, is refused without it.
type Job struct {
	// Name names the job in the whole namespace: 1 to 128 characters, the first a letter
	// or digit, then also . _ : / and -. Required.
	Name string
	// Schedule says when the ticks are; see ParseSchedule. Required, unless After says
	// when the job runs: then it must be empty.
	Schedule string
	// TimeZone is the zone the schedule is read in, such as Europe/Berlin. Default UTC,
	// which is also all that a job with After may name.
	TimeZone string
	// Func is called for each granted run, once or as often as Retry says. Required.
	Func Func

	// Overlap says what happens to a tick while another run of the job goes on anywhere in
	// the cluster: skip it, queue it, replace that run, or allow both. Default skip.
	Overlap Overlap
	// CatchUp says which of the ticks that nobody could claim in time are made up for: the
	// latest, all, or none. Default latest, which is also all that a job with After may name.
	CatchUp CatchUp
	// CatchUpMax is how many of them catch_up all runs, the newest ones: 1 to 10,000.
	// Default 10. For CatchUpAll only.
	CatchUpMax int
	// StartWithin: a tick that could start only later than this after it was due is not
	// run, but recorded as missed. With After it counts from the end of the job followed.
	// 0: no such limit, the default. Below the nodes' grace it leaves only the owner in time.
	StartWithin time.Duration
	// OnCrash says what follows a run whose node vanished, lost its lease, or cancelled it
	// in a drain: record it, or rerun it as another attempt. Default record.
	OnCrash OnCrash
	// RerunMax is how many further attempts on_crash rerun gives a tick: 1 to 100.
	// Default 3. For OnCrashRerun only.
	RerunMax int
	// Timeout ends a run's context with cause ErrTimeout. It covers the whole run, all
	// tries and the waits between them. 0: none, the default.
	Timeout time.Duration
	// TTL is the lease time: 3 s to 1 h. A run whose node vanished is settled by others
	// only after it. Default 15 s.
	TTL time.Duration
	// Retry calls the function again inside the same run. Default: never.
	Retry Retry
	// Shards splits each tick into that many parts, 1 to 1024, which run at once, each on the
	// node that is first for it; see Run.Shard. The tick ends with its last shard. Default 1.
	Shards int
	// Params holds one parameter for each shard, at most 256 bytes each; see Run.Param. Default
	// none.
	Params []string
	// Placement says who goes first at a tick: the node that hashing prefers, or all that
	// may run the job at once. Default owner.
	Placement Placement
	// Labels are what a node must carry to run the job: at most 64. Default none.
	Labels map[string]string
	// After names another job of the registry: this one has no schedule and runs once for
	// each tick of that one that ended well, with the same tick. See [Registry.Check].
	// Default: none.
	After string
}

// Retry says how often and how soon a failed function is called again inside one run,
// under the same lease and token. An error marked [Permanent] and the end of the run's
// context are not followed by another try.
type Retry struct {
	// Max is the number of further tries: 0 to 100. 0: none, the default.
	Max int
	// Backoff is the wait before the second try; it doubles with each further one, and up
	// to half of it is taken off at random. Above 0. Default 1 s. Only with Max.
	Backoff time.Duration
	// MaxBackoff is where the doubling ends: Backoff to 24 h. Default 1 m. Only with Max.
	MaxBackoff time.Duration
}

// Defaults are the settings a job takes where it names none.
type Defaults struct {
	// TTL: default DefaultTTL.
	TTL time.Duration
	// TimeZone: default DefaultTimeZone.
	TimeZone string
	// Overlap and CatchUp replace a job's zero value, which is also how a job says skip
	// or latest: a default other than those cannot be taken back by a job.
	Overlap Overlap
	CatchUp CatchUp
}

// WithDefaults returns j with its empty settings filled from d, and what d leaves empty
// from the constants above and one shard. What belongs to a policy is filled only where
// the job has that policy. A schedule with a CRON_TZ= prefix sets the zone, whatever d
// says; a job with After takes neither zone nor catch-up from d. It checks nothing.
func (j Job) WithDefaults(d Defaults) Job {
	j.TTL = cmp.Or(j.TTL, d.TTL, DefaultTTL)
	j.Overlap = cmp.Or(j.Overlap, d.Overlap)
	j.Shards = cmp.Or(j.Shards, 1)
	if j.After != "" {
		j.TimeZone = cmp.Or(j.TimeZone, DefaultTimeZone)
	} else {
		j.TimeZone = cmp.Or(j.TimeZone, defaultZone(j.Schedule, d.TimeZone))
		j.CatchUp = cmp.Or(j.CatchUp, d.CatchUp)
	}
	if j.CatchUp == CatchUpAll {
		j.CatchUpMax = cmp.Or(j.CatchUpMax, DefaultCatchUpMax)
	}
	if j.OnCrash == OnCrashRerun {
		j.RerunMax = cmp.Or(j.RerunMax, DefaultRerunMax)
	}
	if j.Retry.Max > 0 {
		j.Retry.Backoff = cmp.Or(j.Retry.Backoff, DefaultBackoff)
		j.Retry.MaxBackoff = cmp.Or(j.Retry.MaxBackoff, DefaultMaxBackoff)
	}
	return j
}

// ParsedSchedule reads the job's schedule, with H resolved by its name. A job with After
// has none: the answer is nil, nil.
func (j Job) ParsedSchedule() (*Schedule, error) {
	if j.After != "" {
		return nil, nil
	}
	return ParseScheduleFor(j.Name, j.Schedule, j.TimeZone)
}

// defaultZone is the zone of a job that names none. A bad prefix yields "", so that the
// fault is reported once, as one of the schedule.
func defaultZone(expr, fallback string) string {
	prefix, _, found, err := cutZone(expr)
	switch {
	case err != nil:
		return ""
	case found:
		if _, err := loadZone(prefix); err != nil {
			return ""
		}
		return prefix
	case fallback != "":
		return fallback
	}
	return DefaultTimeZone
}

// clone returns j with maps and slices of its own.
func (j Job) clone() Job {
	j.Labels = maps.Clone(j.Labels)
	j.Params = slices.Clone(j.Params)
	return j
}
