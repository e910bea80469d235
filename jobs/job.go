package jobs

import (
	"context"
	"maps"
	"slices"
	"time"
)

// DefaultTTL is the lease time of a job that names none.
const DefaultTTL = 15 * time.Second

// DefaultTimeZone is the zone of a job that names none.
const DefaultTimeZone = "UTC"

// Func is what a job does at a tick. It must return soon after ctx ends;
// context.Cause(ctx) says why it ended. A returned error settles the run as failed.
type Func func(ctx context.Context, run *Run) error

// Job is a named piece of work with a schedule, policies and a function.
type Job struct {
	// Name names the job in the whole namespace: 1 to 128 characters, the first a letter
	// or digit, then also . _ : / and -. Required.
	Name string
	// Schedule says when the ticks are; see ParseSchedule. Required.
	Schedule string
	// TimeZone is the zone the schedule is read in, such as Europe/Berlin. Default UTC.
	TimeZone string
	// Func is called once for each granted run. Required.
	Func Func

	// Overlap: default skip. This version knows skip only.
	Overlap Overlap
	// CatchUp: default latest. This version knows latest only.
	CatchUp CatchUp
	// CatchUpMax limits catch_up all. Not there yet: leave 0.
	CatchUpMax int
	// StartWithin: a tick later than this is recorded as missed. Not there yet: leave 0.
	StartWithin time.Duration
	// OnCrash: default record. This version knows record only.
	OnCrash OnCrash
	// RerunMax limits on_crash rerun. Not there yet: leave 0.
	RerunMax int
	// Timeout ends a run's context with cause ErrTimeout; whole milliseconds. 0: none.
	Timeout time.Duration
	// TTL is the lease time: 3 s to 1 h, whole milliseconds. A run whose node vanished is
	// settled by others only after it. Default 15 s.
	TTL time.Duration
	// Retry repeats a failed function inside one run. Not there yet: leave it empty.
	Retry Retry
	// Shards splits each tick into that many parts, 1 to 1024. Default 1; more is not
	// there yet.
	Shards int
	// Params holds one parameter for each shard. Not there yet: leave it empty.
	Params []string
	// Placement: default owner. This version knows owner only.
	Placement Placement
	// Labels are what a node must carry to run the job. Default none.
	Labels map[string]string
	// After names the job whose success starts this one. Not there yet: leave it empty.
	After string
}

// Retry says how often and how soon a failed function is called again inside one run.
type Retry struct {
	// Max is the number of further tries; 0: none.
	Max int
	// Backoff is the wait before the second try; it doubles up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
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
// from DefaultTTL, DefaultTimeZone and one shard. A schedule with a CRON_TZ= prefix sets
// the zone, whatever d says. It checks nothing.
func (j Job) WithDefaults(d Defaults) Job {
	if j.TTL == 0 {
		j.TTL = d.TTL
	}
	if j.TTL == 0 {
		j.TTL = DefaultTTL
	}
	if j.TimeZone == "" {
		j.TimeZone = defaultZone(j.Schedule, d.TimeZone)
	}
	if j.Overlap == OverlapSkip {
		j.Overlap = d.Overlap
	}
	if j.CatchUp == CatchUpLatest {
		j.CatchUp = d.CatchUp
	}
	if j.Shards == 0 {
		j.Shards = 1
	}
	return j
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
