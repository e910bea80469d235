package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

func jobsBackfillCommand(a *command.App) *cobra.Command {
	var o ops.BackfillOptions
	var from, to *command.TimeFlag
	backfill := a.Command("backfill NAME --from T --to T [--parallel N] [--dry-run] [--reason TEXT]", "run the ticks that a job has in a range", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			for i, f := range []*command.TimeFlag{from, to} {
				if f.Text == "" {
					return command.Usagef("--%s is missing: an end of the range, such as 2d or 2026-11-24 22:00", []string{"from", "to"}[i])
				}
			}
			return onJob(a, func(t command.Tool) (err error) {
				if o.From, err = t.Instant(from); err != nil {
					return err
				}
				if o.To, err = t.Instant(to); err != nil {
					return err
				}
				return jobsBackfill(t, o)
			})(cmd, args)
		})
	backfill.Long = `Runs the ticks that the job's schedule has from one instant to another, both
included, once each and in order, whether they ran before or not, and prints the
backfill's id. The schedule goes on beside it: the runs of a backfill do not hold
the job, no tick is skipped for them, and the cursor does not move. With --parallel
1 each tick starts when the one before it has ended; while the job is paused none
does. At most 10,000 ticks, and one backfill of a job at a time. --dry-run prints
how many ticks there are, and the first and last ones.

` + command.TimeForms
	backfill.Example = `escapement jobs backfill settle-orders --from 2026-11-01 --to 2026-11-23 --tz Europe/Berlin --dry-run
escapement jobs backfill settle-orders --from 2026-11-01 --to 2026-11-23 --parallel 4 --reason "prices were wrong"`
	from = command.AddTimeFlag(backfill, "from", command.Ago, "where the range begins, `T`: 2d is two days ago; required")
	to = command.AddTimeFlag(backfill, "to", command.Ago, "where the range ends, `T`: 1d is one day ago; required")
	backfill.Flags().IntVar(&o.Parallel, "parallel", 1, "how many ticks run at a time, 1 to 100")
	backfill.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say which ticks there are")
	a.ReasonFlag(backfill)
	return backfill
}

func jobsBackfill(t command.Tool, o ops.BackfillOptions) error {
	if o.Parallel == 0 {
		return command.Usagef("--parallel is 0; from 1 to 100")
	}
	plan, err := t.Client.Backfill(t.Ctx, t.Args[0], o)
	if err != nil {
		return err
	}
	if t.JSON() {
		return print.JSON(t.Stdout, plan)
	}
	if !o.DryRun {
		t.Report("%s of job %s, from %s to %s; `escapement jobs backfills %s` shows how far it is", print.Many(plan.Ticks, "tick"), t.Args[0],
			print.Stamp(plan.First[0]), print.Stamp(slices.Concat(plan.First, plan.Last)[len(plan.First)+len(plan.Last)-1]), t.Args[0])
		_, err = fmt.Fprintln(t.Stdout, plan.ID)
		return err
	}
	lines := []string{print.Many(plan.Ticks, "tick")}
	for _, at := range plan.First {
		lines = append(lines, print.Stamp(at))
	}
	if plan.Ticks > int64(len(plan.First)+len(plan.Last)) {
		lines = append(lines, "...")
	}
	for _, at := range plan.Last {
		lines = append(lines, print.Stamp(at))
	}
	_, err = fmt.Fprintln(t.Stdout, strings.Join(lines, "\n"))
	return err
}

func jobsBackfillsCommand(a *command.App) *cobra.Command {
	backfills := a.Command("backfills [NAME]", "list backfills", cobra.MaximumNArgs(1), a.Connect(func(t command.Tool) error {
		name := ""
		if len(t.Args) > 0 {
			name = t.Args[0]
		}
		all, unread := t.Client.ListBackfills(t.Ctx, name)
		if unread != nil && all == nil {
			return t.SuggestJob(name, unread)
		}
		return errors.Join(printBackfills(a, all), a.ReportUnreadable(unread))
	}))
	backfills.Long = `Lists the backfills that are under way, and of each job the last one that has
ended. NEXT is the tick up to which all have a run. END is when it ended, or, with
a ~, when it ends if it goes on as it did.`
	backfills.Example = `escapement jobs backfills
escapement jobs backfills settle-orders -o wide`
	return backfills
}

func printBackfills(a *command.App, all []ops.BackfillView) error {
	if a.JSON() {
		return print.JSON(a.Stdout, print.List(all))
	}
	out := a.NewTable(print.Whole("JOB"), print.Whole("STATE"), print.Whole("ENDED"), print.Col("RUNNING"), print.Instant("NEXT"), print.Col("END"), print.Col("OUTCOMES"), print.Wide("FROM"), print.Wide("TO"),
		print.Wide("PARALLEL"), print.Wide("BY"), print.Wide("ID"))
	for _, v := range all {
		end := out.At(v.End)
		if !v.ETA.IsZero() {
			end = "~" + out.At(v.ETA)
		}
		out.Row(v.Job, v.State, fmt.Sprintf("%d of %d", v.Ended, v.Ticks), fmt.Sprint(v.Running), out.At(v.Next), end, tally(v.Counts), print.Stamp(v.From),
			print.Stamp(v.To), fmt.Sprint(v.Parallel), v.Author, v.ID)
	}
	return out.Flush()
}

// tally is how many ended how, most first: "998 succeeded, 2 failed".
func tally(counts map[jobs.Outcome]int64) string {
	var words []string
	for outcome := jobs.OutcomeRunning; outcome <= jobs.OutcomeSuperseded; outcome++ {
		if n := counts[outcome]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	return strings.Join(words, ", ")
}

func jobsBackfillCancelCommand(a *command.App) *cobra.Command {
	var o ops.CancelOptions
	cancel := a.Command("backfill-cancel NAME [--reason TEXT]", "cancel a job's backfill", command.Wants("NAME"), func(cmd *cobra.Command, args []string) error {
		return onJob(a, func(t command.Tool) error {
			o.Author = a.Author(o.Author)
			v, err := t.Client.CancelBackfill(t.Ctx, t.Args[0], o)
			if err != nil {
				return err
			}
			if a.JSON() {
				return print.JSON(a.Stdout, v)
			}
			a.Report("backfill %s of job %s is cancelled after %d of %d ticks", v.ID, v.Job, v.Ended, v.Ticks)
			return nil
		})(cmd, args)
	})
	cancel.Long = `Cancels the backfill of the job that is under way: no further tick gets a run. Its
runs that are pending are recorded as cancelled, and those in flight are told to
end, as runs cancel tells them.`
	cancel.Example = `escapement jobs backfill-cancel settle-orders --reason "wrong range"`
	command.AuthorFlag(cancel, &o.Author)
	cancel.Flags().StringVar(&o.Reason, "reason", "", "why, a `text` for the history")
	return cancel
}
