package cli

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// authorFlag adds --author to a command whose author is kept.
func authorFlag(cmd *cobra.Command, author *string) {
	cmd.Flags().StringVar(author, "author", "", "who does it, a `name`; default: "+config.AuthorVariable+", else the user's name")
}

// reasonFlag adds --reason to commands that change something and need no reason.
func (a *app) reasonFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.reason, "reason", "", "why, a `text` for the audit")
}

// author returns the operator's name: by the flag, the environment, or the operating system.
func (a *app) author(flag string) string {
	if name := cmp.Or(strings.TrimSpace(flag), strings.TrimSpace(a.env[config.AuthorVariable])); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(a.env["USER"], a.env["LOGNAME"]) // a container's user may have no name; the library has a default
}

// actor returns the operator, for the audit.
func (a *app) actor() ops.Actor {
	return ops.Actor{Name: a.author(""), Via: "cli", Reason: a.reason}
}

// noted records an operation on Redis itself in the audit.
func (a *app) noted(l *config.Loaded, client redis.UniversalClient, what ops.Action, result error) error {
	in, err := ops.New(client, l.Namespace)
	if err != nil {
		return cmp.Or(result, err)
	}
	return in.As(a.actor()).Note(context.Background(), what, result)
}

// filled refuses flags that were given without a text, as with a script's unset variable: without
// them a command would do more than was meant.
func filled(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usagef("--%s is empty; give it a value, or leave the flag out", name)
		}
	}
	return nil
}

func (a *app) jobsPauseCommand() *cobra.Command {
	var author, reason string
	var until *timeFlag
	pause := a.command("pause NAME --reason TEXT [--until T]", "stop a job's schedule", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usagef("--reason is missing; say why, for whoever finds the job paused")
			}
			if err := filled(cmd, "until"); err != nil {
				return err
			}
			end, err := until.when()
			if err != nil {
				return err
			}
			return a.inspectJob(func(t tool) error {
				at, err := t.instant(end)
				if err != nil {
					return err
				}
				o := ops.PauseOptions{Reason: reason, Author: a.author(author), Until: at}
				if err := t.in.Pause(t.ctx, t.args[0], o); err != nil {
					return err
				}
				return a.operated(t, "is paused")
			})(cmd, args)
		})
	pause.Long = `Ticks that nobody has claimed yet, and those up to the end of the pause, will not
run; they are recorded as paused and are not made up for. A run that is going goes
on, and jobs run and runs rerun are carried out. Paused again, a job takes the new
end and reason.

` + timeForms
	pause.Flags().StringVar(&reason, "reason", "", "why, a `text`; required")
	until = addTimeFlag(pause, "until", fromNow, "when the pause ends by itself, `T`: 2d is in two days; default: jobs resume")
	authorFlag(pause, &author)
	return pause
}

func (a *app) jobsResumeCommand() *cobra.Command {
	resume := a.command("resume NAME [--reason TEXT]", "end a job's pause", wants("NAME"), a.inspectJob(func(t tool) error {
		if err := t.in.Resume(t.ctx, t.args[0]); err != nil {
			return err
		}
		return a.operated(t, "runs on its schedule")
	}))
	a.reasonFlag(resume)
	return resume
}

func (a *app) jobsRewindCommand() *cobra.Command {
	var to *timeFlag
	rewind := a.command("rewind NAME --to T [--reason TEXT]", "run a job's past ticks again", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if to.text == "" {
				return usagef("--to is missing: the time to go back to, such as 2h or 2026-11-24 22:00")
			}
			back, err := to.when()
			if err != nil {
				return err
			}
			return a.inspectJob(func(t tool) error { return a.jobsRewind(t, back) })(cmd, args)
		})
	rewind.Long = `Sets the job's cursor back to its first tick at or after T, and prints that tick.
The ticks from there on are answered once more, by the job's own rules: those of
the last 10 s run in any case; of older ones, with catch_up latest, the newest one
runs and the others are recorded as missed. Those that ran before run as a later
attempt. Refused while a run is in flight, and
before the recorded history (jobs get shows where that begins).

` + timeForms
	a.reasonFlag(rewind)
	to = addTimeFlag(rewind, "to", ago, "the instant to go back to, `T`: 2h is two hours ago; required")
	return rewind
}

func (a *app) jobsRewind(t tool, back when) error {
	to, err := t.instant(back)
	if err != nil {
		return err
	}
	tick, err := t.in.Rewind(t.ctx, t.args[0], to)
	if err != nil {
		return err
	}
	at := ops.FormatTime(tick)
	if a.json() {
		return a.operated(t, "begins again with the tick of "+at)
	}
	if _, err := fmt.Fprintln(a.stdout, at); err != nil {
		return fmt.Errorf("job %s begins again with the tick of %s: %w", t.args[0], at, err)
	}
	a.say("job %s begins again with that tick", t.args[0])
	return nil
}

// operated prints the state of a job: in words, or as in jobs get.
func (a *app) operated(t tool, words string) error {
	j, err := t.in.GetJob(t.ctx, t.args[0])
	if err = a.sayUnheard(err); err != nil {
		return fmt.Errorf("job %s %s: %w", t.args[0], words, err)
	}
	if a.json() {
		return print.JSON(a.stdout, j)
	}
	if j.Pause != nil {
		words = "is paused " + paused(j)
	}
	a.say("job %s %s", j.Name, words)
	return nil
}
