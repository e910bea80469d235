package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// outcomes are the words of --outcome, but for pending.
var outcomes = []string{"running", "succeeded", "failed", "timed_out", "cancelled", "lost", "abandoned",
	"skipped", "missed", "paused", "superseded"}

func (a *app) runsCommand() *cobra.Command {
	var filter ops.RunFilter
	var since *timeFlag
	list := a.command("list [--job NAME] [--since T] [--outcome O] [--after PLACE] [--limit N]", "list runs, and ticks that did not run", wants(),
		func(cmd *cobra.Command, args []string) error {
			if words := append([]string{ops.OutcomePending}, outcomes...); filter.Outcome != "" && !slices.Contains(words, filter.Outcome) {
				return usagef("--outcome %s is not one of %s%s", print.Quote(filter.Outcome), strings.Join(words, ", "), spec.DidYouMean(filter.Outcome, words))
			}
			filter.Limit = a.limit(cmd, filter.Limit)
			from, err := since.when()
			if err != nil {
				return err
			}
			zone, err := since.zone()
			if err != nil {
				return err
			}
			return a.inspect(func(t tool) error { return a.runsList(t, filter, from, zone) })(cmd, args)
		})
	list.Flags().StringVar(&filter.Job, "job", "", "only those of the job `NAME`")
	since = addTimeFlag(list, "since", ago, "only those that have ended, or in flight are due, since `T`: 10m is ten minutes ago")
	list.Long = `Lists what is going or still to come first, by its tick, then what is over by the time of
its end, and ticks that did not run, in a row, by when that was recorded; the newest first.

OUTCOME is pending for a run that nobody was granted yet; in JSON that is the outcome
running, with a reason that begins with pending and says what the run waits for.
--outcome running lists both.

TICK is in UTC, or in the zone of --tz; x14 are so many ticks in a row that did not run, from the
first of them on. LAG is started minus due, as runs get has them. The last column has the run, or
why there was none: runs get RUN says more of a run, and -o wide has all columns. A row without
TICK is no run and no tick, but a mark where the schedule was changed or set back.

` + pageForms + `
With more than 1,000 jobs a page reads the newest of what is recorded. It reads the history of
every job, without --job, where that is not enough: with an --outcome that is rare, for what is
far back, and soon after a move.

` + timeForms
	list.Flags().StringVar(&filter.Outcome, "outcome", "", "only those with this `outcome`")
	list.Flags().StringVar(&filter.After, "after", "", "only what is behind this `PLACE`, as the page before has named it")
	limitFlag(list, &filter.Limit)
	get := a.command("get RUN", "show one run, and what it wrote", wants("RUN"), a.inspect(a.runsGet))
	return a.group("runs COMMAND", "list, show, cancel and repeat runs", list, get, a.runsLogsCommand(), a.runsCancelCommand(), a.runsRerunCommand())
}

func (a *app) runsList(t tool, filter ops.RunFilter, since when, zone *time.Location) (err error) {
	if filter.Since, err = t.instant(since); err != nil {
		return err
	}
	found, unread := t.in.ListRuns(t.ctx, filter)
	if unread != nil && found.Items == nil {
		return t.near(filter.Job, unread)
	}
	if err := a.printRuns(found.Items, zone); err != nil {
		return err
	}
	a.sayMore(len(found.Items), found.Next)
	a.warnLeftAlone(found.UnknownFormat)
	return a.sayLacks(unread)
}

func (a *app) printRuns(views []ops.RunView, zone *time.Location) error {
	if a.json() {
		return print.JSON(a.stdout, print.List(views))
	}
	shards, runs := print.Whole("SHARD"), print.Whole("RUN, OR WHY NOT")
	shards.Wide = !slices.ContainsFunc(views, func(r ops.RunView) bool { return r.Shards > 1 }) // shown where a run has shards
	if a.flags.output == outputWide {
		runs.Heading = "RUN"
	}
	out := a.newTable(print.Instant("TICK"), print.Whole("JOB"), shards, print.Whole("OUTCOME"), print.Wide("ATTEMPT"), print.Wide("TRIGGER"), print.Whole("NODE"), print.Wide("TOKEN"),
		print.Whole("LAG"), print.Whole("DURATION"), runs, print.Wide("WHY"))
	out.Zone = zone
	most := 0
	if out.Cuts {
		most = 40
	}
	for _, r := range views {
		run := r.Run
		if !out.Wide {
			run = runOrWhyNot(r, most, out.At)
		}
		out.Row(ticksIn(out, r), r.Job, shard(r), outcome(r)+print.Percent(r.Progress), print.Number(r.Attempt), r.Trigger, r.Node, print.Number(r.Token), started(r, r.Lag), started(r, r.Duration), run, because(r, most, out.At))
	}
	return out.Flush()
}

// shard names a run's part of a tick: "2 of 16", from 0, and "all 16" for the tick as a whole.
func shard(r ops.RunView) string {
	switch {
	case r.Whole:
		return fmt.Sprintf("all %d", r.Shards)
	case r.Shards > 1:
		return fmt.Sprintf("%d of %d", r.Shard, r.Shards)
	}
	return ""
}

// outcome is a run's outcome; in a table, pending is one.
func outcome(r ops.RunView) string {
	if r.Pending() {
		return ops.OutcomePending
	}
	return r.Outcome.String()
}

func (a *app) runsGet(t tool) error {
	r, err := t.in.GetRun(t.ctx, t.args[0])
	if err != nil {
		return err
	}
	if a.json() {
		return print.JSON(a.stdout, r)
	}
	cells := []string{"run", r.Run, "job", r.Job, "tick", ticks(r), "shard", shard(r), "of", r.Of, "param", r.Param, "trigger", r.Trigger,
		"outcome", outcome(r), "reason", r.Reason, "note", r.Note, "error", r.Error,
		"node", r.Node, "token", print.Number(r.Token), "attempt", print.Number(r.Attempt), "tries", print.Number(r.Tries), "next attempt", r.NextAttempt,
		"generation", r.Generation, "due", print.Stamp(r.Due), "started", print.Stamp(r.Started), "ended", print.Stamp(r.Ended),
		"lag", started(r, r.Lag), "duration", started(r, r.Duration), "progress", print.Progress(r.Progress), "payload", print.FirstLine(string(r.Payload), 200)}
	if err := print.Pairs(a.stdout, cells...); err != nil || r.Output == "" {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "\n%s", print.Output(r.Output, print.IsTerminal(a.stdout)))
	return err
}

func (a *app) runsCancelCommand() *cobra.Command {
	var author, reason string
	cancel := a.command("cancel RUN [--reason TEXT]", "end a run, or one that has not begun", wants("RUN"), a.inspect(func(t tool) error {
		return a.runsCancel(t, ops.CancelOptions{Author: a.author(author), Reason: reason})
	}))
	cancel.Long = `A run that is going has its context cancelled by its node, and a command its process
group ended; this returns before that has come to an end. A run that nobody was
granted yet is recorded as cancelled.`
	cancel.Flags().StringVar(&reason, "reason", "", "why, a `text`")
	authorFlag(cancel, &author)
	return cancel
}

func (a *app) runsCancel(t tool, o ops.CancelOptions) error {
	was, err := t.in.GetRun(t.ctx, t.args[0])
	if err != nil {
		was = ops.RunView{Run: t.args[0]} // Cancel returns its error
	}
	did, err := t.in.Cancel(t.ctx, t.args[0], o)
	if err != nil {
		return err
	}
	run, err := t.in.GetRun(t.ctx, t.args[0])
	back := errors.Is(err, ops.ErrUnknownRun)
	if back {
		run, err = handedBack(t, was)
	}
	if err != nil {
		return fmt.Errorf("run %s is cancelled: %w", t.args[0], err)
	}
	words := "it will not run"
	switch {
	case back && run.Run == t.args[0]:
		words = "it was handed back meanwhile, and nothing of it is left"
	case back:
		words = "it was handed back meanwhile and is run " + run.Run + "; runs get shows how it ends"
	case did == ops.CancelTold && run.Whole:
		words = "its parts are told to end; runs get shows how it ends"
	case did == ops.CancelTold:
		words = "its node is told to end it; runs get shows how it ends"
	case !run.Started.IsZero():
		words = "it had ended so already"
	}
	if a.json() {
		return print.JSON(a.stdout, run)
	}
	a.say("run %s is cancelled: %s", t.args[0], words)
	return nil
}

// handedBack finds a run that was handed back: it goes on under another id. If its job was removed
// since, only its old id is left.
func handedBack(t tool, was ops.RunView) (ops.RunView, error) {
	all, err := t.in.ListRuns(t.ctx, ops.RunFilter{Job: was.Job})
	if errors.Is(err, ops.ErrUnknownJob) {
		return ops.RunView{Run: was.Run}, nil
	}
	for _, run := range all.Items {
		same := run.Run != "" && !run.Tick.IsZero() && !was.Tick.IsZero() && run.Tick.Equal(was.Tick)
		if same && run.Shard == was.Shard && run.Whole == was.Whole && run.Attempt == was.Attempt && run.Trigger == was.Trigger {
			return t.in.GetRun(t.ctx, run.Run)
		}
	}
	return ops.RunView{Run: was.Run}, err
}

func (a *app) runsRerunCommand() *cobra.Command {
	var w waiting
	rerun := a.command("rerun RUN [--reason TEXT] [--wait] [--wait-for D]", "run an ended run's tick again", wants("RUN"), a.inspect(func(t tool) error {
		if err := w.read(); err != nil {
			return err
		}
		id, err := t.in.Rerun(t.ctx, t.args[0])
		if err != nil {
			return err
		}
		run, err := t.in.GetRun(t.ctx, id)
		if err == nil && run.Outcome != jobs.OutcomeRunning {
			a.say("that attempt, asked for now or before, has ended: %s; for one more, rerun it in turn", run.Outcome)
		}
		return a.follow(t, ops.RunView{Run: id, Job: run.Job}, w)
	}))
	rerun.Long = `Asks for the next attempt of a run that has ended, with its tick and payload, and
prints the attempt's id: the same however often it is asked for.
` + waitHelp
	a.reasonFlag(rerun)
	w.addFlags(rerun)
	return rerun
}

// ticks is a run's tick, the range of ticks that did not run, or nothing for a mark.
func ticks(r ops.RunView) string {
	switch {
	case r.Mark():
		return ""
	case r.Until.IsZero() || r.Count == nil || *r.Count < 2:
		return print.Stamp(r.Tick)
	}
	return fmt.Sprintf("%s to %s (%d)", print.Stamp(r.Tick), print.Stamp(r.Until), *r.Count)
}

// ticksIn returns the tick of a row; for a range, where there is little room, the first tick and
// the count.
func ticksIn(t *print.Table, r ops.RunView) string {
	switch {
	case r.Mark():
		return ""
	case r.Count != nil && *r.Count > 1 && t.Wide:
		return fmt.Sprintf("%s to %s (%d)", t.At(r.Tick), t.At(r.Until), *r.Count)
	case r.Count != nil && *r.Count > 1:
		return fmt.Sprintf("%s x%d", t.At(r.Tick), *r.Count)
	}
	return t.At(r.Tick)
}

// started returns a duration that only a run that began has.
func started(r ops.RunView, d time.Duration) string {
	if r.Started.IsZero() {
		return ""
	}
	return spec.FormatDuration(d)
}

// word is an outcome in a table; "" for none.
func word(o jobs.Outcome) string {
	if o == 0 {
		return ""
	}
	return o.String()
}
