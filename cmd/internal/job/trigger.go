package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
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

func jobsRunCommand(a *command.App) *cobra.Command {
	var o triggerOptions
	var due *command.TimeFlag
	run := a.Command("run NAME [--payload JSON] [--at T] [--unique KEY] [--reason TEXT] [--wait] [--wait-for D]", "run a job beside its schedule", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			payload, err := payloadOf(a, o.payload)
			if err != nil {
				return err
			}
			if err := command.Filled(cmd, "at", "unique"); err != nil {
				return err
			}
			if err := o.read(); err != nil {
				return err
			}
			return onJob(a, func(t command.Tool) error { return jobsRun(t, payload, due, o) })(cmd, args)
		})
	run.SuggestFor = []string{"trigger", "start"}
	run.Long = `Asks for one run of the job and prints its id; the nodes start it. The schedule is
not touched, and a paused job runs too. With --at the run waits until then, and
that is its tick. With --unique whoever asks again with the same key, for this
job, gets the id of the first run and makes no other: for 168 h after the run was due.
` + waitHelp + `

` + command.TimeForms
	run.Example = `escapement jobs run report
escapement jobs run report --at "2026-12-01 08:00" --tz Europe/Berlin --unique december
escapement jobs run report --payload '{"day": "2026-11-24"}' --wait-for 10m`
	run.Flags().StringVar(&o.payload, "payload", "", "`JSON` for the run, at most 64 KiB; - reads it from stdin")
	due = command.AddTimeFlag(run, "at", command.FromNow, "when to run, `T`: 10m is ten minutes from now")
	run.Flags().StringVar(&o.unique, "unique", "", "a `key` that names the request: asked again, it is the same run")
	a.ReasonFlag(run)
	o.addFlags(run)
	return run
}

func jobsRun(t command.Tool, payload []byte, due *command.TimeFlag, o triggerOptions) error {
	name := t.Args[0]
	at, err := t.Instant(due)
	if err != nil {
		return err
	}
	before := ops.ErrUnknownRun
	if o.unique != "" {
		_, before = t.Client.RunByKey(t.Ctx, name, o.unique)
	}
	id, err := t.Client.Trigger(t.Ctx, name, ops.TriggerOptions{Payload: payload, At: at, Unique: o.unique})
	if err != nil {
		return err
	}
	if o.unique == "" || !reportEarlier(t, id, before == nil) {
		warnRun(t, name, at)
	}
	return follow(t, ops.RunView{Run: id, Job: name}, o.waiting)
}

// reportEarlier prints the state of an earlier run with the same unique key, and reports whether
// there is one.
func reportEarlier(t command.Tool, id string, found bool) bool {
	run, err := t.Client.GetRun(t.Ctx, id)
	switch {
	case errors.Is(err, ops.ErrUnknownRun):
		t.Report("run %s was asked for before; the history has it no more", id)
		return true
	case found && err == nil:
		t.Report("run %s was asked for before: it %s", id, standing(run))
	}
	return found
}

// warnRun warns of reasons why the requested run may start earlier or later than expected.
func warnRun(t command.Tool, name string, at time.Time) {
	if now, err := t.Client.Now(t.Ctx); err == nil && !at.IsZero() && at.Before(now) {
		t.Report("%s is over by Redis' clock: the run is due at once", ops.FormatTime(at))
	}
	if j, _ := t.Client.GetJob(t.Ctx, name); j.Name != "" && j.Owner == "" { // it only is to help
		t.Report("no living node can run job %s; it runs as soon as one can", j.Name)
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

func runsRerunCommand(a *command.App) *cobra.Command {
	var w waiting
	rerun := a.Command("rerun RUN [--reason TEXT] [--wait] [--wait-for D]", "run an ended run's tick again", command.Wants("RUN"), a.Connect(func(t command.Tool) error {
		if err := w.read(); err != nil {
			return err
		}
		id, err := t.Client.Rerun(t.Ctx, t.Args[0])
		if err != nil {
			return err
		}
		run, err := t.Client.GetRun(t.Ctx, id)
		if err == nil && run.Outcome != jobs.OutcomeRunning {
			a.Report("that attempt, asked for now or before, has ended: %s; for one more, rerun it in turn", run.Outcome)
		}
		return follow(t, ops.RunView{Run: id, Job: run.Job}, w)
	}))
	rerun.Long = `Asks for the next attempt of a run that has ended, with its tick and payload, and
prints the attempt's id: the same however often it is asked for.
` + waitHelp
	rerun.Example = `escapement runs rerun 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --wait-for 10m`
	a.ReasonFlag(rerun)
	w.addFlags(rerun)
	return rerun
}

// payloadOf reads the value of --payload, and requires JSON.
func payloadOf(a *command.App, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(a.Stdin, maxPayload+1))
		if err != nil {
			return nil, fmt.Errorf("payload from stdin: %w", err)
		}
		text = strings.TrimSpace(string(data))
	}
	if len(text) > maxPayload {
		return nil, command.Usagef("--payload is larger than %d KiB; hand over a reference instead", maxPayload>>10)
	}
	if !json.Valid([]byte(text)) {
		return nil, command.Usagef("--payload is not JSON; a text is written with its quotes, '\"like this\"'")
	}
	return []byte(text), nil
}
