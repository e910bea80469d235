package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

// maxPayload bounds what a trigger carries, in bytes; a command gets it as a variable.
const maxPayload = 64 << 10

func (a *app) jobsCommand() *cobra.Command {
	list := a.command("list", "list the jobs", wants(), a.inspect(a.jobsList))
	get := a.command("get NAME", "show one job", wants("NAME"), a.inspectJob(a.jobsGet))
	return a.group("jobs COMMAND", "list, show, run and operate jobs", list, get, a.jobsRunCommand(),
		a.jobsPauseCommand(), a.jobsResumeCommand(), a.jobsRewindCommand(), a.jobsRemoveCommand())
}

// inspectJob is inspect for a command whose first argument is a job's name.
func (a *app) inspectJob(f func(tool) error) func(*cobra.Command, []string) error {
	return a.inspect(func(t tool) error { return t.near(t.args[0], f(t)) })
}

// near adds the name that may have been meant to an error about an unknown job.
func (t tool) near(name string, err error) error {
	if !errors.Is(err, scheduler.ErrUnknownJob) {
		return err
	}
	views, unread := t.in.Jobs(t.ctx)
	if unread != nil && views == nil {
		return err // it only was to help
	}
	var names []string
	for _, j := range views {
		names = append(names, j.Name)
	}
	return fmt.Errorf("%w%s", err, didYouMean(name, names))
}

func (a *app) jobsList(t tool) error {
	views, unread := t.in.Jobs(t.ctx)
	if unread != nil && views == nil {
		return unread
	}
	return errors.Join(a.printJobs(views), unread) // those it could read come beside the error
}

func (a *app) printJobs(views []scheduler.JobView) error {
	if a.json() {
		return printJSON(a.stdout, list(views))
	}
	out := newTable(a.stdout, "NAME", "SCHEDULE", "ZONE", "NEXT", "LAST", "OWNER", "STATE")
	for _, j := range views {
		out.row(j.Name, schedule(j), j.TimeZone, stamp(j.Next), stamp(j.Last), j.Owner, state(j))
	}
	return out.flush()
}

// schedule says when a job runs.
func schedule(j scheduler.JobView) string {
	if j.After != "" {
		return "after " + j.After
	}
	return j.Schedule
}

// state names what keeps a job from running on its schedule, "" when nothing does.
func state(j scheduler.JobView) string {
	var words []string
	if j.Paused {
		words = append(words, "paused")
	}
	if j.Orphan {
		words = append(words, "orphan")
	}
	return strings.Join(words, ", ")
}

func (a *app) jobsGet(t tool) error {
	j, err := t.in.Job(t.ctx, t.args[0])
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.stdout, j)
	}
	return pairs(a.stdout, "name", j.Name, "schedule", schedule(j), "time zone", j.TimeZone,
		"next", stamp(j.Next), "last", stamp(j.Last), "owner", j.Owner, "state", state(j), "paused", paused(j), "held by", j.Open,
		"generation", j.Generation, "revision", j.Revision, "shards", fmt.Sprint(j.Shards),
		"overlap", j.Overlap, "catch up", j.CatchUp, "counts", counts(j.Counts), "history", history(j))
}

// paused is "false", or since when, until when, by whom and why.
func paused(j scheduler.JobView) string {
	if j.Pause == nil {
		return fmt.Sprint(j.Paused)
	}
	until := "it is resumed"
	if j.Pause.Until != nil {
		until = stamp(j.Pause.Until)
	}
	return fmt.Sprintf("since %s until %s by %s: %s", stamp(j.Pause.Since), until, j.Pause.Author, j.Pause.Reason)
}

// history says where the recorded history begins.
func history(j scheduler.JobView) string {
	switch {
	case j.HistoryFrom == nil:
		return ""
	case j.TrimmedTo != nil:
		return "from " + stamp(j.TrimmedTo) + ", what was before is dropped"
	}
	return "from " + stamp(j.HistoryFrom)
}

// counts is "12 succeeded, 3 missed", in the order of the outcomes.
func counts(by map[string]int64) string {
	var parts []string
	for _, o := range outcomes {
		if by[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[o], o))
		}
	}
	return strings.Join(parts, ", ")
}

type triggerOptions struct {
	payload, at, unique string
	wait                bool
}

func (a *app) jobsRunCommand() *cobra.Command {
	var o triggerOptions
	run := a.command("run NAME [--payload JSON] [--at T] [--unique KEY] [--wait]", "run a job beside its schedule", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			payload, err := a.payload(o.payload)
			if err != nil {
				return err
			}
			at, err := parseWhen("--at", o.at)
			if err != nil {
				return err
			}
			if o.unique == "" && cmd.Flags().Changed("unique") {
				return usagef("--unique is empty; name the request, or leave the flag out")
			}
			return a.inspectJob(func(t tool) error { return a.jobsRun(t, payload, at, o) })(cmd, args)
		})
	run.Long = `Asks for one run of the job and prints its id; the nodes start it. The schedule is
not touched, and a paused job runs too. With --at the run waits until then, and
that is its tick. With --unique whoever asks again with the same key, for this
job, gets the id of the first run and makes no other. With --wait it returns when
the run has ended, and exits 7 when the run did not succeed.`
	run.Flags().StringVar(&o.payload, "payload", "", "`JSON` for the run, at most 64 KiB; - reads it from stdin")
	run.Flags().StringVar(&o.at, "at", "", "when to run, `T`: "+whenUsage)
	run.Flags().StringVar(&o.unique, "unique", "", "a `key` that names the request: asked again, it is the same run")
	run.Flags().BoolVar(&o.wait, "wait", false, "return when the run has ended")
	return run
}

func (a *app) jobsRun(t tool, payload []byte, w when, o triggerOptions) error {
	name := t.args[0]
	at, err := t.instant(w)
	if err != nil {
		return err
	}
	id, err := t.in.Trigger(t.ctx, name, scheduler.TriggerOptions{Payload: payload, At: at, Unique: o.unique})
	if err != nil {
		return err
	}
	if now, err := t.in.Now(t.ctx); err == nil && !at.IsZero() && at.Before(now) {
		fmt.Fprintf(a.stderr, "escapement: %s is over by Redis' clock: the run is due at once\n", scheduler.Stamp(at))
	}
	if j, err := t.in.Job(t.ctx, name); err == nil && j.Owner == "" {
		fmt.Fprintf(a.stderr, "escapement: no living node can run job %s; it runs as soon as one can\n", j.Name)
	}
	return a.follow(t, scheduler.RunView{Run: id, Job: name}, o.wait)
}

// follow prints a run that was asked for: its id, or with JSON what is known of it; with wait when it
// has ended.
func (a *app) follow(t tool, asked scheduler.RunView, wait bool) error {
	if !wait && !a.json() {
		fmt.Fprintln(a.stdout, asked.Run)
		return nil
	}
	get := t.in.Run
	if wait {
		fmt.Fprintln(a.stderr, "escapement: waiting for run "+asked.Run)
		get = t.in.Wait
	}
	run, err := get(t.ctx, asked.Run)
	switch {
	case errors.Is(err, scheduler.ErrUnknownRun) && !wait:
		// Named by --unique, it may have ended so long ago that its row is gone. The id is known all the same.
		fmt.Fprintf(a.stderr, "escapement: the history has run %s no more\n", asked.Run)
		return printJSON(a.stdout, asked)
	case err != nil:
		return fmt.Errorf("run %s was asked for: %w", asked.Run, err)
	case a.json():
		err = printJSON(a.stdout, run)
	default:
		fmt.Fprintln(a.stdout, asked.Run)
	}
	if wait && run.Outcome != "succeeded" {
		return errors.Join(err, fmt.Errorf("%w: %s %s", errAwaited, run.Outcome, because(run, 200)))
	}
	return err
}

// because is why a run ended as it did, in a line.
func because(r scheduler.RunView, most int) string {
	return strings.TrimSpace(r.Reason + " " + firstLine(r.Error, most))
}

// payload reads what --payload says, and wants JSON.
func (a *app) payload(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxPayload+1))
		if err != nil {
			return nil, fmt.Errorf("payload from stdin: %w", err)
		}
		text = strings.TrimSpace(string(data))
	}
	if len(text) > maxPayload {
		return nil, usagef("--payload is larger than %d KiB; hand over a reference instead", maxPayload>>10)
	}
	if !json.Valid([]byte(text)) {
		return nil, usagef("--payload is not JSON; a text is written with its quotes, '\"like this\"'")
	}
	return []byte(text), nil
}
