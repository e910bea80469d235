package job

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

func jobsPauseCommand(a *command.App) *cobra.Command {
	var author, reason string
	var until *command.TimeFlag
	pause := a.Command("pause NAME --reason TEXT [--until T]", "stop a job's schedule", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return command.Usagef("--reason is missing; say why, for whoever finds the job paused")
			}
			if err := command.Filled(cmd, "until"); err != nil {
				return err
			}
			return onJob(a, func(t command.Tool) error {
				at, err := t.Instant(until)
				if err != nil {
					return err
				}
				o := ops.PauseOptions{Reason: reason, Author: a.Author(author), Until: at}
				if err := t.Client.Pause(t.Ctx, t.Args[0], o); err != nil {
					return err
				}
				return reportJob(t, "is paused")
			})(cmd, args)
		})
	pause.Long = `Ticks that nobody has claimed yet, and those up to the end of the pause, will not
run; they are recorded as paused and are not made up for. A run that is going goes
on, and jobs run and runs rerun are carried out. Paused again, a job takes the new
end and reason.

` + command.TimeForms
	pause.Example = `escapement jobs pause settle-orders --reason "bank is down" --until 2h
escapement jobs pause settle-orders --reason "bank is down" --until "2026-12-01 06:00" --tz Europe/Berlin`
	pause.Flags().StringVar(&reason, "reason", "", "why, a `text`; required")
	until = command.AddTimeFlag(pause, "until", command.FromNow, "when the pause ends by itself, `T`: 2d is in two days; default: jobs resume")
	command.AuthorFlag(pause, &author)
	return pause
}

func jobsResumeCommand(a *command.App) *cobra.Command {
	resume := a.Command("resume NAME [--reason TEXT]", "end a job's pause", command.Wants("NAME"), onJob(a, func(t command.Tool) error {
		if err := t.Client.Resume(t.Ctx, t.Args[0]); err != nil {
			return err
		}
		return reportJob(t, "runs on its schedule")
	}))
	resume.Example = `escapement jobs resume settle-orders`
	a.ReasonFlag(resume)
	return resume
}

func jobsRewindCommand(a *command.App) *cobra.Command {
	var to *command.TimeFlag
	rewind := a.Command("rewind NAME --to T [--reason TEXT]", "run a job's past ticks again", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if to.Text == "" {
				return command.Usagef("--to is missing: the time to go back to, such as 2h or 2026-11-24 22:00")
			}
			return onJob(a, func(t command.Tool) error { return jobsRewind(t, to) })(cmd, args)
		})
	rewind.Long = `Sets the job's cursor back to its first tick at or after T, and prints that tick.
The ticks from there on are answered once more, by the job's own rules: those of
the last 10 s run in any case; of older ones, with catch_up latest, the newest one
runs and the others are recorded as missed. Those that ran before run as a later
attempt. Refused while a run is in flight, and
before the recorded history (jobs get shows where that begins).

` + command.TimeForms
	rewind.Example = `escapement jobs rewind settle-orders --to 2h
escapement jobs rewind settle-orders --to "2026-11-24 22:00" --tz Europe/Berlin`
	a.ReasonFlag(rewind)
	to = command.AddTimeFlag(rewind, "to", command.Ago, "the instant to go back to, `T`: 2h is two hours ago; required")
	return rewind
}

func jobsRewind(t command.Tool, back *command.TimeFlag) error {
	to, err := t.Instant(back)
	if err != nil {
		return err
	}
	tick, err := t.Client.Rewind(t.Ctx, t.Args[0], to)
	if err != nil {
		return err
	}
	at := ops.FormatTime(tick)
	if t.JSON() {
		return reportJob(t, "begins again with the tick of "+at)
	}
	if _, err := fmt.Fprintln(t.Stdout, at); err != nil {
		return fmt.Errorf("job %s begins again with the tick of %s: %w", t.Args[0], at, err)
	}
	t.Report("job %s begins again with that tick", t.Args[0])
	return nil
}

// reportJob prints the state of a job: in words, or as in jobs get.
func reportJob(t command.Tool, words string) error {
	j, err := t.Client.GetJob(t.Ctx, t.Args[0])
	if err = t.ReportUnreachable(err); err != nil {
		return fmt.Errorf("job %s %s: %w", t.Args[0], words, err)
	}
	if t.JSON() {
		return print.JSON(t.Stdout, j)
	}
	if j.Pause != nil {
		words = "is paused " + paused(j)
	}
	t.Report("job %s %s", j.Name, words)
	return nil
}
