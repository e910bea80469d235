package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// maxPayload bounds the payload of a trigger, in bytes; a command gets it as a variable.
const maxPayload = 64 << 10

type triggerOptions struct {
	payload, unique string
	waiting
}

func (a *app) jobsRunCommand() *cobra.Command {
	var o triggerOptions
	var due *timeFlag
	run := a.command("run NAME [--payload JSON] [--at T] [--unique KEY] [--reason TEXT] [--wait] [--wait-for D]", "run a job beside its schedule", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			payload, err := a.payload(o.payload)
			if err != nil {
				return err
			}
			at, err := due.when()
			if err != nil {
				return err
			}
			if err := filled(cmd, "at", "unique"); err != nil {
				return err
			}
			if err := o.read(); err != nil {
				return err
			}
			return a.inspectJob(func(t tool) error { return a.jobsRun(t, payload, at, o) })(cmd, args)
		})
	run.SuggestFor = []string{"trigger", "start"}
	run.Long = `Asks for one run of the job and prints its id; the nodes start it. The schedule is
not touched, and a paused job runs too. With --at the run waits until then, and
that is its tick. With --unique whoever asks again with the same key, for this
job, gets the id of the first run and makes no other: for 168 h after the run was due.
` + waitHelp + `

` + timeForms
	run.Flags().StringVar(&o.payload, "payload", "", "`JSON` for the run, at most 64 KiB; - reads it from stdin")
	due = addTimeFlag(run, "at", fromNow, "when to run, `T`: 10m is ten minutes from now")
	run.Flags().StringVar(&o.unique, "unique", "", "a `key` that names the request: asked again, it is the same run")
	a.reasonFlag(run)
	o.addFlags(run)
	return run
}

func (a *app) jobsRun(t tool, payload []byte, w when, o triggerOptions) error {
	name := t.args[0]
	at, err := t.instant(w)
	if err != nil {
		return err
	}
	var before error = ops.ErrUnknownRun
	if o.unique != "" {
		_, before = t.in.RunByKey(t.ctx, name, o.unique)
	}
	id, err := t.in.Trigger(t.ctx, name, ops.TriggerOptions{Payload: payload, At: at, Unique: o.unique})
	if err != nil {
		return err
	}
	if o.unique == "" || !a.askedBefore(t, id, before == nil) {
		a.warnRun(t, name, at)
	}
	return a.follow(t, ops.RunView{Run: id, Job: name}, o.waiting)
}

// askedBefore prints the state of an earlier run with the same unique key, and reports whether
// there is one.
func (a *app) askedBefore(t tool, id string, found bool) bool {
	run, err := t.in.GetRun(t.ctx, id)
	switch {
	case errors.Is(err, ops.ErrUnknownRun):
		a.say("run %s was asked for before; the history has it no more", id)
		return true
	case found && err == nil:
		a.say("run %s was asked for before: it %s", id, standing(run))
	}
	return found
}

// warnRun warns of reasons why the requested run may start earlier or later than expected.
func (a *app) warnRun(t tool, name string, at time.Time) {
	if now, err := t.in.Now(t.ctx); err == nil && !at.IsZero() && at.Before(now) {
		a.say("%s is over by Redis' clock: the run is due at once", ops.FormatTime(at))
	}
	if j, _ := t.in.GetJob(t.ctx, name); j.Name != "" && j.Owner == "" { // it only is to help
		a.say("no living node can run job %s; it runs as soon as one can", j.Name)
	}
}

// standing returns the state of a run, or how it ended: the end of a sentence.
func standing(r ops.RunView) string {
	switch {
	case r.Pending():
		return "is " + r.Reason
	case r.Outcome == jobs.OutcomeRunning:
		return "is running"
	}
	return "ended: " + ending(r, 200)
}

// ending is how a run ended, and why, in a line.
func ending(r ops.RunView, most int) string {
	why := because(r, most, print.Stamp)
	switch {
	case why == "":
		return r.Outcome.String()
	case strings.HasPrefix(why, r.Outcome.String()):
		return why
	}
	return r.Outcome.String() + ": " + why
}

// because is why a run ended as it did, or does not begin, in a line.
func because(r ops.RunView, most int, at func(time.Time) string) string {
	if r.Mark() {
		return marked(r, at)
	}
	reason := r.Reason
	if r.Pending() {
		reason = strings.TrimLeft(strings.TrimPrefix(reason, ops.OutcomePending), ": ")
	}
	var parts []string
	for _, part := range []string{reason, r.Note, print.FirstLine(r.Error, most)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// runOrWhyNot returns a run's id, with its difference from the first run of its tick, or why there
// was no run.
func runOrWhyNot(r ops.RunView, most int, at func(time.Time) string) string {
	if r.Run == "" {
		return because(r, most, at)
	}
	var apart []string
	if r.Attempt > 1 {
		apart = append(apart, fmt.Sprintf("attempt %d", r.Attempt))
	}
	if r.Trigger == jobs.TriggerRerun.String() || r.Trigger == jobs.TriggerBackfill.String() {
		apart = append(apart, r.Trigger)
	}
	return strings.TrimSpace(r.Run + " " + strings.Join(apart, ", "))
}

// marked returns the text of a mark in the history.
func marked(r ops.RunView, at func(time.Time) string) string {
	switch {
	case r.Reason == "rewound":
		return "rewound to " + at(r.Tick)
	case r.Note != "":
		return r.Reason + "; no tick was owed by " + r.Note
	}
	return r.Reason + "; no tick was owed"
}

// payload reads the value of --payload, and requires JSON.
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
