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
	get := a.command("get RUN", "show one run, and what it wrote", wants("RUN"), a.inspect(a.runsGet))
	return a.group("runs COMMAND", "list, show, cancel and repeat runs", list, get, a.runsCancelCommand(), a.runsRerunCommand())
}

// parseSince reads an instant, or a duration before now. "" is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	ago, err := parseDuration(strings.TrimPrefix(text, "-")) // as --to has it, or bare
	if err != nil || ago < 0 || text[0] == '+' {
		return time.Time{}, usagef("--since %s is neither an instant like 2026-01-02T15:04:05Z nor a duration like 10m", quote(text))
	}
	return now.Add(-ago), nil
}

func (a *app) runsList(t tool, filter scheduler.RunFilter) error {
	views, err := t.in.Runs(t.ctx, filter)
	if err != nil {
		return t.near(filter.Job, err)
	}
	if a.json() {
		return printJSON(a.stdout, list(views))
	}
	out := newTable(a.stdout, "TICK", "JOB", "OUTCOME", "NODE", "TOKEN", "LAG", "DURATION", "RUN", "WHY")
	for _, r := range views {
		out.row(ticks(r), r.Job, r.Outcome, r.Node, r.Token, started(r, r.LagMS), started(r, r.DurationMS), r.Run,
			strings.TrimSpace(because(r, 60)+" "+notBefore(r)))
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
	cells := []string{"run", r.Run, "job", r.Job, "tick", ticks(r), "trigger", r.Trigger,
		"outcome", r.Outcome, "reason", strings.TrimSpace(r.Reason + " " + notBefore(r)), "note", r.Note, "error", r.Error,
		"node", r.Node, "token", r.Token, "attempt", strconv.Itoa(r.Attempt), "tries", strconv.Itoa(r.Tries),
		"generation", r.Generation, "due", stamp(r.Due), "started", stamp(r.Started), "ended", stamp(r.Ended),
		"lag", started(r, r.LagMS), "duration", started(r, r.DurationMS), "payload", firstLine(string(r.Payload), 200)}
	if err := pairs(a.stdout, cells...); err != nil || r.Output == "" {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "\n%s", output(r.Output, isTerminal(a.stdout)))
	return err
}

// output is what a run wrote, with a line end. For a terminal, what would move its cursor or change its
// state is written as an escape.
func output(text string, terminal bool) string {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !terminal {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(harmless(part))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// notBefore says when a pending run may start, if that is not at once.
func notBefore(r scheduler.RunView) string {
	if r.NotBefore == nil {
		return ""
	}
	return "from " + stamp(r.NotBefore)
}

func (a *app) runsCancelCommand() *cobra.Command {
	var author, reason string
	cancel := a.command("cancel RUN [--reason TEXT]", "end a run, or one that has not begun", wants("RUN"), a.inspect(func(t tool) error {
		return a.runsCancel(t, scheduler.CancelOptions{Author: a.author(author), Reason: reason})
	}))
	cancel.Long = `A run that is going has its context cancelled by its node, and a command its process
group ended; this returns before that has come to an end. A run that nobody was
granted yet is recorded as cancelled.`
	cancel.Flags().StringVar(&reason, "reason", "", "why, a `text`")
	authorFlag(cancel, &author)
	return cancel
}

func (a *app) runsCancel(t tool, o scheduler.CancelOptions) error {
	did, err := t.in.Cancel(t.ctx, t.args[0], o)
	if err != nil {
		return err
	}
	run, err := t.in.Run(t.ctx, t.args[0])
	if err != nil {
		return fmt.Errorf("run %s is cancelled: %w", t.args[0], err)
	}
	words := "it will not run"
	if did == scheduler.CancelTold {
		words = "its node is told to end it; runs get shows how it ends"
	} else if run.Started != nil {
		words = "it had ended so already"
	}
	if a.json() {
		return printJSON(a.stdout, run)
	}
	fmt.Fprintf(a.stderr, "escapement: run %s is cancelled: %s\n", t.args[0], words)
	return nil
}

func (a *app) runsRerunCommand() *cobra.Command {
	var wait bool
	rerun := a.command("rerun RUN [--wait]", "run an ended run's tick again", wants("RUN"), a.inspect(func(t tool) error {
		id, err := t.in.Rerun(t.ctx, t.args[0])
		if err != nil {
			return err
		}
		run, err := t.in.Run(t.ctx, id)
		if err == nil && run.Outcome != "running" {
			fmt.Fprintf(a.stderr, "escapement: that attempt, asked for now or before, has ended: %s; for one more, rerun it in turn\n", run.Outcome)
		}
		return a.follow(t, scheduler.RunView{Run: id, Job: run.Job}, wait)
	}))
	rerun.Long = `Asks for the next attempt of a run that has ended, with its tick and payload, and
prints the attempt's id: the same however often it is asked for. With --wait it
returns when the attempt has ended, and exits 7 when that did not succeed.`
	rerun.Flags().BoolVar(&wait, "wait", false, "return when the attempt has ended")
	return rerun
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
