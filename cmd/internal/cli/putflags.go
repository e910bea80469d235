package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler"
)

// putFlags adds a flag for each setting of a stored job. It has the setting's name in config.yaml with dashes: start_at is --start-at, and
// retry.max is --retry-max. Those of params, labels and expect.success_within are --param, --label and --success-within.
func putFlags(cmd *cobra.Command, v *scheduler.StoredView) (take func()) {
	f := cmd.Flags()
	f.StringVar(&v.Handler, "handler", "", "the `name` of the handler that its runs call")
	f.StringVar(&v.Schedule, "schedule", "", "a cron `expression`")
	f.StringVar(&v.TimeZone, "time-zone", "", "the `zone` of the schedule; default UTC")
	f.StringSliceVar((*[]string)(&v.After), "after", nil, "in place of a schedule: `jobs` that it follows, with commas")
	f.StringVar(&v.When, "when", "", "after which ends of those, a `word`: succeeded, failed or any")
	f.StringSliceVar(&v.Except, "except", nil, "`days` without ticks: 2026-12-24, or 2026-12-24..2027-01-02, with commas; no calendars")
	f.StringSliceVar(&v.Only, "only", nil, "the only `days` with ticks")
	f.Var((*millisFlag)(&v.JitterMS), "jitter", "all ticks are later by an offset below this `duration`")
	f.IntVar(&v.MaxRuns, "max-runs", 0, "it has no more ticks when this `number` has been run")
	f.StringVar(&v.Overlap, "overlap", "", "a `word`: skip, queue, replace or allow")
	f.StringVar(&v.CatchUp, "catch-up", "", "a `word`: latest, all or none")
	f.IntVar(&v.CatchUpMax, "catch-up-max", 0, "with --catch-up all: at most this `number` of ticks")
	f.Var((*millisFlag)(&v.StartWithinMS), "start-within", "how late a run may start, a `duration`")
	f.StringVar(&v.OnCrash, "on-crash", "", "a `word`: record or rerun")
	f.IntVar(&v.RerunMax, "rerun-max", 0, "with --on-crash rerun: at most this `number` of times")
	f.Var((*millisFlag)(&v.TimeoutMS), "timeout", "when a run is ended, a `duration`")
	f.Var((*millisFlag)(&v.StallAfterMS), "stall-after", "how long a run may make no progress, a `duration`")
	f.StringVar(&v.OnStall, "on-stall", "", "what happens then, a `word`: tell or cancel")
	f.Var((*millisFlag)(&v.TTLMS), "ttl", "the lease time of a run, a `duration`")
	f.IntVar(&v.Shards, "shards", 0, "the `number` of shards of each tick")
	f.StringArrayVar(&v.Params, "param", nil, "the `text` for a shard; once for each of them")
	f.StringVar(&v.Placement, "placement", "", "a `word`: owner or race")
	f.StringToStringVar(&v.Labels, "label", nil, "only nodes with this label run it, `KEY=VALUE`")
	f.Lookup("label").DefValue = "" // not "[]", in the help
	f.StringVar(&v.Guard, "guard", "", "the `name` of a locker whose lock each run takes too")
	f.Var((*millisFlag)(&v.SuccessWithinMS), "success-within", "the longest `duration` without a run that succeeded")
	f.StringVar(&v.ManagedBy, "managed-by", "", "the `label` of jobs apply --prune")
	return nestedPutFlags(cmd, v)
}

// nestedPutFlags adds the flags of settings that stand in a section of their own. take puts the sections into v, where one of their
// flags was given.
func nestedPutFlags(cmd *cobra.Command, v *scheduler.StoredView) (take func()) {
	var retry scheduler.RetryView
	var limit scheduler.LimitView
	f := cmd.Flags()
	f.IntVar(&retry.Max, "retry-max", 0, "a run that failed is tried again at most this `number` of times")
	f.Var((*millisFlag)(&retry.BackoffMS), "retry-backoff", "the wait before the first retry, a `duration`")
	f.Var((*millisFlag)(&retry.MaxBackoffMS), "retry-max-backoff", "the longest wait, a `duration`")
	f.Var((*millisFlag)(&retry.TryTimeoutMS), "retry-try-timeout", "when each try is ended, a `duration`")
	f.StringVar(&retry.On, "retry-on", "", "where retries run, a `word`: same_node or other_node")
	f.StringVar(&limit.Group, "limit-group", "", "the `name` of a group whose runs at once are limited")
	f.IntVar(&limit.Max, "limit-max", 0, "the `number` of runs at once in the group")
	return func() {
		if retry != (scheduler.RetryView{}) {
			v.Retry = &retry
		}
		if limit != (scheduler.LimitView{}) {
			v.Limit = &limit
		}
	}
}

// millisFlag is a flag that takes a duration in whole milliseconds.
type millisFlag int64

func (m *millisFlag) Set(text string) error {
	d, err := spec.ParseDuration(text)
	if err == nil && d%time.Millisecond != 0 {
		err = fmt.Errorf("%s is no whole number of milliseconds", spec.Clip(text))
	}
	*m = millisFlag(d.Milliseconds())
	return err
}

func (m *millisFlag) String() string {
	if m == nil || *m == 0 {
		return ""
	}
	return spec.FormatDuration(redisconn.Duration(int64(*m), time.Millisecond))
}

func (m *millisFlag) Type() string { return "duration" }

// boundFlags adds the flags of the first and the last instant of a job's ticks. read reads what was given, and resolve puts it into v,
// by Redis' clock.
func boundFlags(cmd *cobra.Command, v *scheduler.StoredView) (read func() (resolve func(t tool) error, err error)) {
	start := addTimeFlag(cmd, "start-at", fromNow, "no tick before `T`")
	end := addTimeFlag(cmd, "end-at", fromNow, "no tick after `T`")
	return func() (func(t tool) error, error) {
		first, bad := start.when()
		last, err := end.when()
		return func(t tool) error {
			for into, w := range map[**scheduler.Stamp]when{&v.StartAt: first, &v.EndAt: last} {
				at, err := t.instant(w)
				if err != nil {
					return err
				}
				if stamp := scheduler.Stamp(at.UTC()); !at.IsZero() {
					*into = &stamp
				}
			}
			return nil
		}, cmp.Or(bad, err)
	}
}
