package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

// outcomes are the words of --outcome.
var outcomes = []string{"running", "succeeded", "failed", "timed_out", "cancelled", "lost", "abandoned",
	"skipped", "missed", "paused", "superseded"}

func (a *app) runsCommand() *cobra.Command {
	var filter scheduler.RunFilter
	var since string
	list := a.command("list [--job NAME] [--since T] [--outcome O] [--limit N]", "list runs, and ticks that did not run", wants(),
		func(cmd *cobra.Command, args []string) error {
			if filter.Outcome != "" && !slices.Contains(outcomes, filter.Outcome) {
				return usagef("--outcome %s is not one of %s%s", quote(filter.Outcome), strings.Join(outcomes, ", "), didYouMean(filter.Outcome, outcomes))
			}
			if filter.Limit < 0 {
				return usagef("--limit %d is negative; 0 lists all", filter.Limit)
			}
			var err error
			if filter.Since, err = parseSince(since, time.Now()); err != nil {
				return err
			}
			return a.inspect(func(t tool) error { return a.runsList(t, filter) })(cmd, args)
		})
	list.Flags().StringVar(&filter.Job, "job", "", "only those of the job `NAME`")
	list.Flags().StringVar(&since, "since", "", "only those due since `T`: 2026-01-02T15:04:05Z, or 10m for ten minutes ago")
	list.Flags().StringVar(&filter.Outcome, "outcome", "", "only those with this `outcome`")
	list.Flags().IntVar(&filter.Limit, "limit", 0, "at most so many, 0: all")
	get := a.command("get RUN", "show one run", wants("RUN"), a.inspect(a.runsGet))
	return a.group("runs COMMAND", "list and show runs", list, get)
}

// parseSince reads an instant, or a duration before now. "" is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	ago, err := parseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, usagef("--since %s is neither an instant like 2026-01-02T15:04:05Z nor a duration like 10m", quote(text))
	}
	return now.Add(-ago), nil
}

func (a *app) runsList(t tool, filter scheduler.RunFilter) error {
	views, err := t.in.Runs(t.ctx, filter)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.stdout, list(views))
	}
	out := newTable(a.stdout, "TICK", "JOB", "OUTCOME", "NODE", "TOKEN", "LAG", "DURATION", "RUN", "WHY")
	for _, r := range views {
		out.row(ticks(r), r.Job, r.Outcome, r.Node, r.Token, started(r, r.LagMS), started(r, r.DurationMS), r.Run,
			strings.TrimSpace(r.Reason+" "+firstLine(r.Error, 60)))
	}
	return out.flush()
}

func (a *app) runsGet(t tool) error {
	r, err := t.in.Run(t.ctx, t.args[0])
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.stdout, r)
	}
	return pairs(a.stdout, "run", r.Run, "job", r.Job, "tick", ticks(r), "trigger", r.Trigger,
		"outcome", r.Outcome, "reason", r.Reason, "error", r.Error, "node", r.Node, "token", r.Token,
		"attempt", strconv.Itoa(r.Attempt), "tries", strconv.Itoa(r.Tries), "generation", r.Generation,
		"due", stamp(r.Due), "started", stamp(r.Started), "ended", stamp(r.Ended),
		"lag", started(r, r.LagMS), "duration", started(r, r.DurationMS))
}

// ticks is a run's tick, or the range of ticks that did not run.
func ticks(r scheduler.RunView) string {
	if r.Until == nil || r.Count < 2 {
		return stamp(r.Tick)
	}
	return fmt.Sprintf("%s to %s (%d)", stamp(r.Tick), stamp(r.Until), r.Count)
}

// started is a duration that means something only for a run that began.
func started(r scheduler.RunView, ms int64) string {
	if r.Started == nil {
		return ""
	}
	return shortDuration(time.Duration(ms) * time.Millisecond)
}
