package jobs

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/jobs/spec"
)

// Func is a job's function. It must return soon after ctx ends; context.Cause(ctx) is the reason.
// After an error the run has failed, or the function is tried again if the job has a [Retry] and
// the error is not [Permanent].
type Func func(ctx context.Context, run *Run) error

// Job is a name with a schedule, policies and a function. Durations are whole milliseconds. A
// setting of a policy that the job does not have, such as CatchUpMax without CatchUpAll, is
// refused.
type Job struct {
	// Name names the job in the whole namespace: 1 to 128 characters, the first a letter
	// or digit, then also . _ : / and -. Required.
	Name string
	// Schedule is the cron expression; see package jobs/cron. Required, and empty with After.
	Schedule string
	// TimeZone is the zone of the schedule, such as Europe/Berlin. Default UTC. A job with After
	// may name UTC only.
	TimeZone string
	// Except and Only are dates, such as 2026-12-24, and ranges with their first and last day, such
	// as 2026-12-24..2027-01-02, in TimeZone: 500 together at most, in the years 2000 to 2199.
	// There is no tick on a day of Except, nor, with Only, on a day outside of Only. A fixed time
	// that the clock jumps over belongs to the day on which the clock would have shown it. A job
	// with After has neither. Default none.
	Except, Only []string
	// StartAt and EndAt are the first and the last instant at which there may be a tick: whole
	// milliseconds. A job whose end is past has no further ticks, which is no fault. A job with
	// After has neither. The zero time, the default: no bound.
	StartAt, EndAt time.Time
	// Jitter moves all ticks of the job by an offset at or above 0 and below Jitter, which its name
	// decides: it is the same for each tick, on every node, and for ever. The other settings of the
	// schedule speak of the ticks before that: a tick of the last minute of a day may run on the
	// next one. Whole milliseconds, up to 24 h. A job with After has none. Default 0.
	Jitter time.Duration
	// MaxRuns is how many ticks of the job are run: when so many have been granted, it has no
	// further ticks, which is no fault. Ticks that are skipped, missed or paused do not count, nor
	// do runs by hand and further attempts. The ledger counts from the first definition with a
	// MaxRuns on; a greater one, or none, lets the job go on with its next tick. Up to
	// 1,000,000,000. A job with After has none. 0: no bound, the default.
	MaxRuns int
	// Func is called for each granted run, once or as often as Retry requires. Required, unless
	// Handler names it.
	Func Func
	// Handler names the function instead: one of the registry's handlers, see [Registry.Handle].
	// Default none.
	Handler string
	// Payload is the payload of each run without a payload of its own: JSON, at most 16 KiB. Only
	// with Handler.
	Payload []byte
	// ManagedBy names the owner of a set of stored jobs, such as a file of them: a job that the
	// file no longer contains is then distinguished from other owners' jobs. A name as a job's.
	// Only with Handler. Default none.
	ManagedBy string

	// Overlap decides what happens to a tick while another run of the job goes on anywhere in the
	// cluster: skip it, queue it, replace the older run, or allow both. Default skip.
	Overlap Overlap
	// CatchUp decides which of the ticks that no node claimed in time are run later: the latest,
	// all, or none. Default latest. A job with After may have the default only.
	CatchUp CatchUp
	// CatchUpMax is how many of them CatchUpAll runs, the newest ones: 1 to 10,000. Default 10.
	// Only with CatchUpAll.
	CatchUpMax int
	// StartWithin is how late a tick may start. A later one is recorded as missed. With After it
	// counts from the end of the other job. 0: no limit, the default. Below the nodes' grace only
	// the tick's owner can start it in time.
	StartWithin time.Duration
	// OnCrash decides what follows a run whose node died, lost its lease, or cancelled it in a
	// drain: record it, or rerun the tick as another attempt. Default record.
	OnCrash OnCrash
	// RerunMax is the number of further attempts of a tick with OnCrashRerun: 1 to 100. Default 3.
	// Only with OnCrashRerun.
	RerunMax int
	// Timeout ends a run's context with cause ErrTimeout. It covers the whole run, with all tries
	// and the waits between them. 0: none, the default.
	Timeout time.Duration
	// StallAfter is how long a run may make no progress before it counts as stalled: at least 1 s.
	// Progress is a call of Run.Progress with a new value, a checkpoint, and the start of a try. 0:
	// never, the default.
	StallAfter time.Duration
	// OnStall decides what the node does with a stalled run. Default tell. Only with StallAfter.
	OnStall OnStall
	// TTL is the lease time of a run: 3 s to 1 h. When a run's node dies, other nodes can record
	// the run after this time. Default 15 s.
	TTL time.Duration
	// Retry calls the function again inside the same run. Default: never.
	Retry Retry
	// Shards is the number of parts of each tick, 1 to 1024. They run at once, on different nodes;
	// see Run.Shard. The tick ends with its last shard. Default 1.
	Shards int
	// Params holds one parameter for each shard, at most 256 bytes each; see Run.Param. Default
	// none.
	Params []string
	// Placement decides which node claims a tick first: the job's owner by hashing, or all at once.
	// Default owner.
	Placement Placement
	// Labels are the labels that a node must have to run the job: at most 64. Default none.
	Labels map[string]string
	// After names upstreams, other jobs of the registry, at most 16. This job has no schedule then,
	// and runs once for each tick that all upstreams have ended as When requires, with the same
	// tick. See [Registry.Check]. Default none.
	After []string
	// When decides after which ends of the upstreams' tick this job runs: succeeded, failed or any.
	// Default succeeded. Only with After.
	When When
	// Limit bounds how many runs of a group of jobs go on at once in the whole cluster. Default none.
	Limit Limit
	// Guard names a locker of the scheduler's Config.Guards. A run then starts only with the lock
	// of that name too, and Run.Token is that lock's. Each shard has a lock of its own. Default
	// none.
	Guard string
	// Expect decides when the job counts as unwell. It does not affect the job's runs; see
	// scheduler/notify. Default nothing.
	Expect Expect
}

// Limit is a group of jobs, such as all jobs of one database, and how many of their runs go on at
// once. A further run waits with its lease and its slot, in the order of arrival, and its output
// names the wait. A tick that could not start within StartWithin is recorded as missed; shards, and
// runs of a job with After, wait without that limit.
type Limit struct {
	// Group is the name of the group in the namespace; a name as a job's. "": no limit.
	Group string
	// Max is the number of runs: 1 to 1000. All jobs of the group give the same.
	Max int
}

// Expect is the demand of a user who depends on a job's results.
type Expect struct {
	// SuccessWithin is the longest time without a run that succeeded: whole milliseconds, up to 366
	// days. 0: no limit, the default.
	SuccessWithin time.Duration
}

// Retry decides how often and when a failed function is called again: inside one run, with the same
// lease and token, or On another node. There is no further try after a [Permanent] error, or when
// the run's context has ended.
type Retry struct {
	// Max is the number of further tries: 0 to 100. 0: none, the default.
	Max int
	// Backoff is the wait before the second try. It doubles with each further try, less a random
	// part of up to a half. Above 0. Default 1 s. Only with Max.
	Backoff time.Duration
	// MaxBackoff bounds the doubled wait: Backoff to 24 h. Default 1 m. Only with Max.
	MaxBackoff time.Duration
	// Timeout ends the context of each try with the cause ErrTryTimeout. The try has failed then if
	// the function returns an error. Below the job's Timeout. 0: none, the default. Only with Max.
	Timeout time.Duration
	// On decides where a further try is made: inside the run, or on another node as a further
	// attempt with one try. A tick then has 1 + Max attempts at most, attempts after a crash
	// included. Default RetrySameNode. Only with Max.
	On RetryOn
}

// Defaults are the values for settings that a job leaves empty.
type Defaults struct {
	// TTL replaces an empty TTL. 0: 15 s.
	TTL time.Duration
	// TimeZone replaces an empty zone. "": UTC.
	TimeZone string
	// Overlap and CatchUp replace the zero values, which are skip and latest. So a job cannot
	// choose skip or latest when the default is another one.
	Overlap Overlap
	CatchUp CatchUp
}

// WithDefaults returns j with empty settings filled from d, and otherwise with the built-in
// defaults. Settings of a policy are filled only if the job has the policy. A schedule with a
// CRON_TZ= prefix sets the zone; a job with After takes neither zone nor catch-up from d. It checks
// nothing.
func (j Job) WithDefaults(d Defaults) Job {
	j.TTL = cmp.Or(j.TTL, d.TTL)
	j.Overlap = cmp.Or(j.Overlap, d.Overlap)
	zone := cmp.Or(j.TimeZone, defaultTimeZone)
	if len(j.After) == 0 {
		zone = cmp.Or(j.TimeZone, cron.ZoneOf(j.Schedule, cmp.Or(d.TimeZone, defaultTimeZone)))
		j.CatchUp = cmp.Or(j.CatchUp, d.CatchUp)
	}
	Settings.Fill(&j)
	j.TimeZone = zone
	return j
}

// Schedule is the ticks of a job: see package cron, which has the language of schedules.
type Schedule = cron.Schedule

// ParsedSchedule parses the job's schedule, with H resolved by the name, and with its bounds. For a
// job with After it returns nil, nil.
func (j Job) ParsedSchedule() (*Schedule, error) {
	if len(j.After) > 0 {
		return nil, nil
	}
	return cron.ParseWithin(j.Name, j.Schedule, j.TimeZone, j.bounds())
}

func (j Job) bounds() cron.Bounds {
	return cron.Bounds{Except: j.Except, Only: j.Only, From: j.StartAt, Until: j.EndAt, Jitter: j.Jitter}
}

var defaultTimeZone = spec.DefaultOf("time_zone")

// clone returns j with maps and slices of its own.
func (j Job) clone() Job {
	j.Labels = maps.Clone(j.Labels)
	j.Params = slices.Clone(j.Params)
	j.Payload, j.After = bytes.Clone(j.Payload), slices.Clone(j.After)
	j.Except, j.Only = slices.Clone(j.Except), slices.Clone(j.Only)
	return j
}
