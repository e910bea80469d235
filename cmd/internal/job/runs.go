package job

import (
	"errors"
	"fmt"
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

// outcomeWords returns the words of --outcome.
func outcomeWords() []string {
	words := []string{ops.OutcomePending}
	for o := jobs.OutcomeRunning; o <= jobs.OutcomeSuperseded; o++ {
		words = append(words, o.String())
	}
	return words
}

// Runs makes the commands runs.
func Runs(a *command.App) *cobra.Command {
	var filter ops.RunFilter
	var since *command.TimeFlag
	list := a.Command("list [--job NAME] [--since T] [--outcome O] [--after PLACE] [--limit N]", "list runs, and ticks that did not run", command.Wants(),
		func(cmd *cobra.Command, args []string) error {
			if words := outcomeWords(); filter.Outcome != "" && !slices.Contains(words, filter.Outcome) {
				return command.Usagef("--outcome %s is not one of %s%s", print.Quote(filter.Outcome), strings.Join(words, ", "), spec.DidYouMean(filter.Outcome, words))
			}
			filter.Limit = a.Limit(cmd, filter.Limit)
			return a.Connect(func(t command.Tool) error { return runsList(t, filter, since) })(cmd, args)
		})
	list.Flags().StringVar(&filter.Job, "job", "", "only those of the job `NAME`")
	since = command.AddTimeFlag(list, "since", command.Ago, "only those that have ended, or in flight are due, since `T`: 10m is ten minutes ago")
	list.Long = `Lists what is going or still to come first, by its tick, then what is over by the time of
its end, and ticks that did not run, in a row, by when that was recorded; the newest first.

OUTCOME is pending for a run that nobody was granted yet; in JSON that is the outcome
running, with a reason that begins with pending and says what the run waits for.
--outcome running lists both.

TICK is in UTC, or in the zone of --tz; x14 are so many ticks in a row that did not run, from the
first of them on. LAG is started minus due, as runs get has them. The last column has the run, or
why there was none: runs get RUN says more of a run, and -o wide has all columns. A row without
TICK is no run and no tick, but a mark where the schedule was changed or set back.

` + command.PageForms + `
With more than 1,000 jobs a page reads the newest of what is recorded. It reads the history of
every job, without --job, where that is not enough: with an --outcome that is rare, for what is
far back, and soon after a move.

` + command.TimeForms
	list.Example = `escapement runs list --job settle-orders --since 2d
escapement runs list --outcome failed --since 2026-11-24 -o wide`
	list.Flags().StringVar(&filter.Outcome, "outcome", "", "only those with this `outcome`")
	list.Flags().StringVar(&filter.After, "after", "", "only what is behind this `PLACE`, as the page before has named it")
	command.LimitFlag(list, &filter.Limit)
	command.CompleteFlag(list, "outcome", command.CompleteWords(outcomeWords()))
	get := a.Command("get RUN", "show one run, and what it wrote", command.Wants("RUN"), a.Connect(runsGet))
	get.Example = `escapement runs get 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d`
	return a.CompleteFirst(a.Group("runs COMMAND", "list, show, cancel and repeat runs", list, get, runsLogsCommand(a), runsCancelCommand(a), runsRerunCommand(a)), runIDs)
}

func runsList(t command.Tool, filter ops.RunFilter, since *command.TimeFlag) (err error) {
	if filter.Since, err = t.Instant(since); err != nil {
		return err
	}
	found, unread := t.Client.ListRuns(t.Ctx, filter)
	if unread != nil && found.Items == nil {
		return t.SuggestJob(filter.Job, unread)
	}
	if err := printRuns(t, found.Items, since.Zone); err != nil {
		return err
	}
	t.ReportNext(len(found.Items), found.Next)
	warnUnknownFormat(t, found.UnknownFormat)
	return t.ReportUnreadable(unread)
}

func printRuns(t command.Tool, views []ops.RunView, zone *time.Location) error {
	if t.JSON() {
		return print.JSON(t.Stdout, print.List(views))
	}
	shards, runs := print.Whole("SHARD"), print.Whole("RUN, OR WHY NOT")
	shards.Wide = !slices.ContainsFunc(views, func(r ops.RunView) bool { return r.Shards > 1 }) // shown where a run has shards
	if t.Wide() {
		runs.Heading = "RUN"
	}
	out := t.NewTable(print.Instant("TICK"), print.Whole("JOB"), shards, print.Whole("OUTCOME"), print.Wide("ATTEMPT"), print.Wide("TRIGGER"), print.Whole("NODE"), print.Wide("TOKEN"),
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

func runsGet(t command.Tool) error {
	r, err := t.Client.GetRun(t.Ctx, t.Args[0])
	if err != nil {
		return err
	}
	if t.JSON() {
		return print.JSON(t.Stdout, r)
	}
	cells := []string{"run", r.Run, "job", r.Job, "tick", ticks(r), "shard", shard(r), "of", r.Of, "param", r.Param, "trigger", r.Trigger,
		"outcome", outcome(r), "reason", r.Reason, "note", r.Note, "error", r.Error,
		"node", r.Node, "token", print.Number(r.Token), "attempt", print.Number(r.Attempt), "tries", print.Number(r.Tries), "next attempt", r.NextAttempt,
		"generation", r.Generation, "due", print.Stamp(r.Due), "started", print.Stamp(r.Started), "ended", print.Stamp(r.Ended),
		"lag", started(r, r.Lag), "duration", started(r, r.Duration), "progress", print.Progress(r.Progress), "payload", print.FirstLine(string(r.Payload), 200)}
	if err := print.Pairs(t.Stdout, cells...); err != nil || r.Output == "" {
		return err
	}
	_, err = fmt.Fprintf(t.Stdout, "\n%s", print.Output(r.Output, print.IsTerminal(t.Stdout)))
	return err
}

func runsCancelCommand(a *command.App) *cobra.Command {
	var author, reason string
	cancel := a.Command("cancel RUN [--reason TEXT]", "end a run, or one that has not begun", command.Wants("RUN"), a.Connect(func(t command.Tool) error {
		return runsCancel(t, ops.CancelOptions{Author: a.Author(author), Reason: reason})
	}))
	cancel.Long = `A run that is going has its context cancelled by its node, and a command its process
group ended; this returns before that has come to an end. A run that nobody was
granted yet is recorded as cancelled.`
	cancel.Example = `escapement runs cancel 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --reason "wrong day"`
	cancel.Flags().StringVar(&reason, "reason", "", "why, a `text`")
	command.AuthorFlag(cancel, &author)
	return cancel
}

func runsCancel(t command.Tool, o ops.CancelOptions) error {
	was, err := t.Client.GetRun(t.Ctx, t.Args[0])
	if err != nil {
		was = ops.RunView{Run: t.Args[0]} // Cancel returns its error
	}
	did, err := t.Client.Cancel(t.Ctx, t.Args[0], o)
	if err != nil {
		return err
	}
	run, err := t.Client.GetRun(t.Ctx, t.Args[0])
	back := errors.Is(err, ops.ErrUnknownRun)
	if back {
		run, err = handedBack(t, was)
	}
	if err != nil {
		return fmt.Errorf("run %s is cancelled: %w", t.Args[0], err)
	}
	words := "it will not run"
	switch {
	case back && run.Run == t.Args[0]:
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
	if t.JSON() {
		return print.JSON(t.Stdout, run)
	}
	t.Report("run %s is cancelled: %s", t.Args[0], words)
	return nil
}

// handedBack finds a run that was handed back: it goes on under another id. If its job was removed
// since, only its old id is left.
func handedBack(t command.Tool, was ops.RunView) (ops.RunView, error) {
	all, err := t.Client.ListRuns(t.Ctx, ops.RunFilter{Job: was.Job})
	if errors.Is(err, ops.ErrUnknownJob) {
		return ops.RunView{Run: was.Run}, nil
	}
	for _, run := range all.Items {
		same := run.Run != "" && !run.Tick.IsZero() && !was.Tick.IsZero() && run.Tick.Equal(was.Tick)
		if same && run.Shard == was.Shard && run.Whole == was.Whole && run.Attempt == was.Attempt && run.Trigger == was.Trigger {
			return t.Client.GetRun(t.Ctx, run.Run)
		}
	}
	return ops.RunView{Run: was.Run}, err
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

// completeRuns is how many runs are named, the newest.
const completeRuns = 100

func runIDs(t command.Tool) (all []string, err error) {
	found, err := t.Client.ListRuns(t.Ctx, ops.RunFilter{Limit: completeRuns})
	for _, r := range found.Items {
		if r.Run != "" {
			all = append(all, cobra.CompletionWithDesc(r.Run, print.Harmless(r.Job)+" "+outcome(r)+" "+print.Stamp(r.Tick)))
		}
	}
	return all, err
}
