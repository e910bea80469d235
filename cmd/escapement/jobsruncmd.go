package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

// maxPayload bounds what a trigger carries, in bytes; a command gets it as a variable.
const maxPayload = 64 << 10

// againAfter is between two tries to reach a Redis that is away.
const againAfter = time.Second

type triggerOptions struct {
	payload, unique string
	wait            bool
}

func (a *app) jobsRunCommand() *cobra.Command {
	var o triggerOptions
	var due *timeFlag
	run := a.command("run NAME [--payload JSON] [--at T] [--unique KEY] [--wait]", "run a job beside its schedule", wants("NAME"),
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
			return a.inspectJob(func(t tool) error { return a.jobsRun(t, payload, at, o) })(cmd, args)
		})
	run.Long = `Asks for one run of the job and prints its id; the nodes start it. The schedule is
not touched, and a paused job runs too. With --at the run waits until then, and
that is its tick. With --unique whoever asks again with the same key, for this
job, gets the id of the first run and makes no other: for 168 h after the run was due.
With --wait it returns when this attempt of the run has ended, and exits 7 when it did
not succeed; an attempt that follows it is named, and not waited for.

` + timeForms
	run.Flags().StringVar(&o.payload, "payload", "", "`JSON` for the run, at most 64 KiB; - reads it from stdin")
	due = addTimeFlag(run, "at", fromNow, "when to run, `T`: 10m is ten minutes from now")
	run.Flags().StringVar(&o.unique, "unique", "", "a `key` that names the request: asked again, it is the same run")
	run.Flags().BoolVar(&o.wait, "wait", false, "return when this attempt of the run has ended")
	return run
}

func (a *app) jobsRun(t tool, payload []byte, w when, o triggerOptions) error {
	name := t.args[0]
	at, err := t.instant(w)
	if err != nil {
		return err
	}
	var before error = scheduler.ErrUnknownRun
	if o.unique != "" {
		_, before = t.in.Asked(t.ctx, name, o.unique)
	}
	id, err := t.in.Trigger(t.ctx, name, scheduler.TriggerOptions{Payload: payload, At: at, Unique: o.unique})
	if err != nil {
		return err
	}
	if o.unique == "" || !a.askedBefore(t, id, before == nil) {
		a.warnRun(t, name, at)
	}
	return a.follow(t, scheduler.RunView{Run: id, Job: name}, o.wait)
}

// askedBefore says how the run stands that a unique key names, if it was there before.
func (a *app) askedBefore(t tool, id string, found bool) bool {
	run, err := t.in.Run(t.ctx, id)
	switch {
	case errors.Is(err, scheduler.ErrUnknownRun):
		a.say("run %s was asked for before; the history has it no more", id)
		return true
	case found && err == nil:
		a.say("run %s was asked for before: it %s", id, standing(run))
	}
	return found
}

// warnRun says what a person may not expect of the run that was just asked for.
func (a *app) warnRun(t tool, name string, at time.Time) {
	if now, err := t.in.Now(t.ctx); err == nil && !at.IsZero() && at.Before(now) {
		a.say("%s is over by Redis' clock: the run is due at once", scheduler.Stamp(at))
	}
	if j, _ := t.in.Job(t.ctx, name); j.Name != "" && j.Owner == "" { // it only is to help
		a.say("no living node can run job %s; it runs as soon as one can", j.Name)
	}
}

// standing is what a run does, or how it ended: the end of a sentence.
func standing(r scheduler.RunView) string {
	switch {
	case r.Pending():
		return "is " + r.Reason
	case r.Outcome == "running":
		return "is running"
	}
	return "ended: " + ending(r, 200)
}

// follow prints a run that was asked for: its id, or with JSON what is known of it; with wait when it
// has ended.
func (a *app) follow(t tool, asked scheduler.RunView, wait bool) error {
	var unsaid error
	if !a.json() {
		if _, err := fmt.Fprintln(a.stdout, asked.Run); err != nil {
			unsaid = fmt.Errorf("run %s was asked for: %w", asked.Run, err)
		}
		if !wait {
			return unsaid
		}
	}
	get := t.in.Run
	if wait {
		get = a.await(t)
	}
	if wait && a.json() {
		a.say("waiting for run %s", asked.Run)
	}
	run, err := get(t.ctx, asked.Run)
	switch {
	case errors.Is(err, scheduler.ErrUnknownRun) && !wait:
		// Named by --unique, it may have ended so long ago that its row is gone. The id is known all the same.
		return printJSON(a.stdout, asked)
	case err != nil:
		return fmt.Errorf("run %s was asked for: %w", asked.Run, err)
	case a.json():
		err = printJSON(a.stdout, run)
	}
	if err = errors.Join(err, unsaid); !wait {
		return err
	}
	words := ending(run, 200)
	if run.NextAttempt != "" {
		words += "; the attempt after it is " + run.NextAttempt // of any number: the tick may have had others after a rewind
	}
	if run.Outcome != "succeeded" {
		return errors.Join(err, fmt.Errorf("%w: %s", errAwaited, words))
	}
	a.say("the run %s, after %s", words, shortDuration(time.Duration(run.DurationMS)*time.Millisecond))
	return err
}

// await waits for a run's end, through outages of Redis too, as long as nobody interrupts it.
func (a *app) await(t tool) func(context.Context, string) (scheduler.RunView, error) {
	return func(ctx context.Context, id string) (scheduler.RunView, error) {
		for told := false; ; told = true {
			run, err := t.in.Wait(ctx, id)
			if !errors.Is(err, locking.ErrUnreachable) || ctx.Err() != nil {
				return run, err
			}
			if !told {
				a.say("Redis does not answer; still waiting for run %s, until interrupted: %v", id, err)
			}
			select {
			case <-ctx.Done():
				return run, fmt.Errorf("wait for run %s: %w", id, context.Cause(ctx))
			case <-time.After(againAfter):
			}
		}
	}
}

// ending is how a run ended, and why, in a line.
func ending(r scheduler.RunView, most int) string {
	why := because(r, most)
	switch {
	case why == "":
		return r.Outcome
	case strings.HasPrefix(why, r.Outcome):
		return why
	}
	return r.Outcome + ": " + why
}

// because is why a run ended as it did, or does not begin, in a line.
func because(r scheduler.RunView, most int) string {
	if r.Mark() {
		return marked(r)
	}
	reason := r.Reason
	if r.Pending() {
		reason = strings.TrimLeft(strings.TrimPrefix(reason, scheduler.OutcomePending), ": ")
	}
	var parts []string
	for _, part := range []string{reason, r.Note, firstLine(r.Error, most)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// marked is what a mark in the history says.
func marked(r scheduler.RunView) string {
	switch {
	case r.Reason == "rewound":
		return "rewound to " + stamp(r.Tick)
	case r.Note != "":
		return r.Reason + "; no tick was owed by " + r.Note
	}
	return r.Reason + "; no tick was owed"
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
