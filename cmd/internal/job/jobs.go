// Package job has the tools for jobs and runs.
package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// Jobs makes the commands jobs.
func Jobs(a *command.App) *cobra.Command {
	var filter ops.JobFilter
	list := a.Command("list [--after NAME] [--limit N]", "list the jobs", command.Wants(), func(cmd *cobra.Command, args []string) error {
		filter.Limit = a.Limit(cmd, filter.Limit)
		return a.Connect(func(t command.Tool) error { return jobsList(t, filter) })(cmd, args)
	})
	list.Long = `Lists jobs by name. NEXT is the next tick that runs: of a paused job the first one after the
pause. LAST OUTCOME is how the run or tick ended that was recorded last, LAST SUCCESS when a run
last succeeded, as far back as the history goes. -o wide adds the time zone, the latest tick
accounted for, and the node that goes first for the job.

` + command.PageForms + `
A page reads the names of all jobs, and of the jobs on it all that is shown.`
	list.Example = `escapement jobs list
escapement jobs list -o json | jq -r '.[] | select(.last_outcome == "failed") | .name'`
	list.Flags().StringVar(&filter.After, "after", "", "only jobs behind this `NAME`")
	command.LimitFlag(list, &filter.Limit)
	get := a.Command("get NAME", "show one job", command.Wants("NAME"), onJob(a, jobsGet))
	get.Example = `escapement jobs get settle-orders`
	return a.CompleteFirst(a.Group("jobs COMMAND", "list, show, run and operate jobs", list, get, jobsRunCommand(a),
		jobsPauseCommand(a), jobsResumeCommand(a), jobsRewindCommand(a), jobsGraphCommand(a),
		jobsBackfillCommand(a), jobsBackfillsCommand(a), jobsBackfillCancelCommand(a),
		jobsPutCommand(a), jobsApplyCommand(a), jobsExportCommand(a), jobsDeleteCommand(a)), command.JobNames)
}

// onJob is Connect for a command whose first argument is a job's name.
func onJob(a *command.App, f func(command.Tool) error) func(*cobra.Command, []string) error {
	return a.Connect(func(t command.Tool) error { return t.SuggestJob(t.Args[0], f(t)) })
}

func jobsList(t command.Tool, filter ops.JobFilter) error {
	found, unread := t.Client.ListJobs(t.Ctx, filter)
	if unread != nil && found.Items == nil {
		return unread
	}
	if slices.ContainsFunc(found.Items, func(j ops.JobView) bool { return j.NoNode != "" }) {
		t.ReportFull(t)
	}
	err := printJobs(t, found.Items)
	t.ReportNext(len(found.Items), found.Next)
	return errors.Join(err, t.ReportUnreadable(unread))
}

func printJobs(t command.Tool, views []ops.JobView) error {
	if t.JSON() {
		return print.JSON(t.Stdout, print.List(views))
	}
	out := t.NewTable(print.Whole("NAME"), print.Col("SCHEDULE"), print.Wide("ZONE"), print.Instant("NEXT"), print.Column{Heading: "LAST", Wide: true, Instant: true},
		print.Whole("LAST OUTCOME"), print.Instant("LAST SUCCESS"), print.Wide("OWNER"), print.Col("STATE"))
	for _, j := range views {
		out.Row(j.Name, schedule(j), zone(j), out.At(j.Next), out.At(j.Last), word(j.LastOutcome), out.At(j.LastSuccess), j.Owner, state(j, out.At))
	}
	return out.Flush()
}

// schedule returns when a job runs.
func schedule(j ops.JobView) string {
	if len(j.After) > 0 {
		return "after " + strings.Join(j.After, ", ")
	}
	return j.Schedule
}

// zone is where the schedule is read; a job that follows another has none.
func zone(j ops.JobView) string {
	if len(j.After) > 0 {
		return ""
	}
	return j.TimeZone
}

// state returns why a job does not run on its schedule, "" when it does.
func state(j ops.JobView, at func(time.Time) string) string {
	var words []string
	if j.Paused {
		word := "paused"
		if j.Pause != nil && !j.Pause.Until.IsZero() {
			word += " until " + at(j.Pause.Until)
		}
		words = append(words, word)
	}
	if j.NoNode != "" {
		words = append(words, "no node")
	}
	return strings.Join(words, ", ")
}

func jobsGet(t command.Tool) error {
	j, err := t.Client.GetJob(t.Ctx, t.Args[0])
	if err = t.ReportUnreachable(err); err != nil {
		return err
	}
	warnUnknownFormat(t, j.UnknownFormat)
	if t.JSON() {
		return print.JSON(t.Stdout, j)
	}
	cells := []string{"name", j.Name, "schedule", schedule(j), "time zone", zone(j),
		"next", print.Stamp(j.Next), "last", print.Stamp(j.Last), "last outcome", word(j.LastOutcome), "last success", print.Stamp(j.LastSuccess), "owner", j.Owner,
		"state", state(j, print.Stamp)}
	cells = append(append(cells, print.Given("no node", j.NoNode)...), "paused", paused(j), "held by", j.Open, "generation", j.Generation, "revision", j.Revision)
	cells = append(cells, print.Given("superseded", strings.Join(j.Superseded, ", "), "standby", strings.Join(j.Standby, ", "))...)
	cells = append(cells, "shards", fmt.Sprint(j.Shards))
	return print.Pairs(t.Stdout, append(append(cells, policies(j)...), "counts", tally(j.Counts), "history", history(j))...)
}

// policies are the names and values of a job's policies. A policy that does not apply is "-".
func policies(j ops.JobView) []string {
	catchUp, onCrash, retry := j.CatchUp.String(), j.OnCrash.String(), ""
	if len(j.After) > 0 {
		catchUp = ""
	} else if j.CatchUpMax > 0 {
		catchUp += fmt.Sprintf(", at most %d", j.CatchUpMax)
	}
	if j.RerunMax > 0 {
		onCrash += fmt.Sprintf(", at most %s", times(j.RerunMax))
	}
	if r := j.Retry; r.Max > 0 {
		retry = fmt.Sprintf("%s, after %s up to %s", times(r.Max), lasting(r.Backoff), lasting(r.MaxBackoff))
		if r.On == jobs.RetryOtherNode {
			retry += ", on another node"
		}
		if r.Timeout > 0 {
			retry += ", each try " + lasting(r.Timeout)
		}
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		labels = append(labels, name+"="+j.Labels[name])
	}
	limit := ""
	if l := j.Limit; l.Group != "" {
		limit = fmt.Sprintf("%d of %s", l.Max, l.Group)
	}
	return []string{"except", strings.Join(j.Except, ", "), "only", strings.Join(j.Only, ", "), "start at", print.Stamp(j.StartAt), "end at", print.Stamp(j.EndAt), "jitter", lasting(j.Jitter), "runs", ofMaxRuns(j),
		"overlap", j.Overlap.String(), "catch up", catchUp, "start within", lasting(j.StartWithin), "on crash", onCrash,
		"timeout", lasting(j.Timeout), "stall after", stallAfter(j), "ttl", lasting(j.TTL), "retry", retry, "labels", strings.Join(labels, ", "), "limit", limit, "guard", j.Guard,
		"handler", strings.TrimSpace(j.Handler + " " + string(j.Payload)), "stored", print.Stamp(j.Stored), "success in", lasting(j.Expect.SuccessWithin)}
}

// stallAfter returns the time without progress and its consequence; "" for never.
func stallAfter(j ops.JobView) string {
	if j.StallAfter == 0 {
		return ""
	}
	return lasting(j.StallAfter) + ", " + j.OnStall.String()
}

// ofMaxRuns returns how many of a job's ticks have run, of how many.
func ofMaxRuns(j ops.JobView) string {
	switch {
	case j.MaxRuns == 0:
		return ""
	case j.Ran >= int64(j.MaxRuns):
		return fmt.Sprintf("%d of %d: finished", j.Ran, j.MaxRuns)
	}
	return fmt.Sprintf("%d of %d", j.Ran, j.MaxRuns)
}

// lasting is a duration, "" for none.
func lasting(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return spec.FormatDuration(d)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// warnUnknownFormat warns that a history has records which are not shown.
func warnUnknownFormat(t command.Tool, n int) {
	if n > 0 {
		t.Report("%s of the history cannot be read by this version and %s left alone; ledger verify names them",
			print.Many(int64(n), "record"), map[bool]string{true: "is", false: "are"}[n == 1])
	}
}

// paused is "false", or since when, until when, by whom and why.
func paused(j ops.JobView) string {
	if j.Pause == nil {
		return fmt.Sprint(j.Paused)
	}
	until := "it is resumed"
	if !j.Pause.Until.IsZero() {
		until = print.Stamp(j.Pause.Until)
	}
	return fmt.Sprintf("since %s until %s by %s: %s", print.Stamp(j.Pause.Since), until, j.Pause.Author, j.Pause.Reason)
}

// history returns where the recorded history begins.
func history(j ops.JobView) string {
	switch {
	case j.HistoryFrom.IsZero():
		return ""
	case !j.TrimmedTo.IsZero():
		return "from " + print.Stamp(j.TrimmedTo) + ", what was before is dropped"
	}
	return "from " + print.Stamp(j.HistoryFrom)
}
