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
	get := a.command("get NAME", "show one job", wants("NAME"), a.inspect(a.jobsGet))
	var o triggerOptions
	run := a.command("run NAME [--payload JSON] [--wait]", "run a job now, beside its schedule", wants("NAME"),
		a.inspect(func(t tool) error { return a.jobsRun(t, o) }))
	run.Long = `Asks for one run of the job and prints its id; the nodes start it. The schedule is
not touched. With --wait it returns when the run has ended, and exits 7 when the
run did not succeed.`
	run.Flags().StringVar(&o.payload, "payload", "", "`JSON` for the run, at most 64 KiB; - reads it from stdin")
	run.Flags().BoolVar(&o.wait, "wait", false, "return when the run has ended")
	return a.group("jobs COMMAND", "list, show and run jobs", list, get, run)
}

type triggerOptions struct {
	payload string
	wait    bool
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
	out := newTable(a.stdout, "NAME", "SCHEDULE", "ZONE", "NEXT", "LAST", "OWNER")
	for _, j := range views {
		out.row(j.Name, j.Schedule, j.TimeZone, stamp(j.Next), stamp(j.Last), j.Owner)
	}
	return out.flush()
}

func (a *app) jobsGet(t tool) error {
	j, err := t.in.Job(t.ctx, t.args[0])
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.stdout, j)
	}
	return pairs(a.stdout, "name", j.Name, "schedule", j.Schedule, "time zone", j.TimeZone,
		"next", stamp(j.Next), "last", stamp(j.Last), "owner", j.Owner, "paused", fmt.Sprint(j.Paused),
		"generation", j.Generation, "revision", j.Revision, "shards", fmt.Sprint(j.Shards),
		"overlap", j.Overlap, "catch up", j.CatchUp)
}

func (a *app) jobsRun(t tool, o triggerOptions) error {
	payload, err := a.payload(o.payload)
	if err != nil {
		return err
	}
	id, err := t.in.Trigger(t.ctx, t.args[0], scheduler.TriggerOptions{Payload: payload})
	if err != nil {
		return err
	}
	if j, err := t.in.Job(t.ctx, t.args[0]); err == nil && j.Owner == "" {
		fmt.Fprintf(a.stderr, "escapement: no living node holds job %s; it runs as soon as one does\n", j.Name)
	}
	if !o.wait {
		if !a.json() {
			fmt.Fprintln(a.stdout, id)
			return nil
		}
		run, err := t.in.Run(t.ctx, id)
		if err != nil {
			return fmt.Errorf("run %s was asked for: %w", id, err)
		}
		return printJSON(a.stdout, run)
	}
	fmt.Fprintln(a.stderr, "escapement: waiting for run "+id)
	run, err := t.in.Wait(t.ctx, id)
	if err != nil {
		return fmt.Errorf("the run was asked for: %w", err)
	}
	if a.json() {
		err = printJSON(a.stdout, run)
	} else {
		fmt.Fprintln(a.stdout, id)
	}
	if run.Outcome != "succeeded" {
		return errors.Join(err, fmt.Errorf("%w: %s %s", errAwaited, run.Outcome, firstLine(run.Error, 200)))
	}
	return err
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
