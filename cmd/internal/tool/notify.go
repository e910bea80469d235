package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/notify"
)

// errNoTarget is returned when no target has the name.
var errNoTarget = command.WithCode(command.ExitNotFound, errors.New("no such target"))

// Notify makes the commands notify.
func Notify(a *command.App) *cobra.Command {
	test := a.Command("test [TARGET]", "send a sample message to the targets of the configuration", cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error { return notifyTest(a, cmd, args) })
	test.Long = `Sends a sample message to each target under notify in the configuration, or to one, and says
which have taken it. It sends once and needs no Redis. Exit code 1 when one has not taken it.`
	test.Example = `escapement notify test
escapement notify test team --config /etc/escapement/config.yaml`
	return a.Group("notify COMMAND", "who is told of jobs that are not well", test)
}

// testedJSON is one target in the output of notify test.
type testedJSON struct {
	Target string `json:"target"`
	Sent   bool   `json:"sent"`
	Error  string `json:"error"`
}

func notifyTest(a *command.App, cmd *cobra.Command, args []string) error {
	l, err := a.Load(cmd, true, false)
	if err != nil {
		return err
	}
	targets := l.NotifyConfig.Targets
	names := config.TargetNames(targets)
	if len(args) > 0 {
		i := slices.Index(names, args[0])
		if i < 0 {
			return fmt.Errorf("%w: %s has no target %s%s; it has: %s", errNoTarget, a.Flags.Config, print.Quote(args[0]), spec.DidYouMean(args[0], names), orNone(names))
		}
		targets = targets[i : i+1]
	}
	if len(targets) == 0 {
		return fmt.Errorf("%w: %s has no targets: add some under notify.targets, such as {name: team, webhook: {url: ..., format: slack}}", errNoTarget, a.Flags.Config)
	}
	tested, failed := []testedJSON{}, []string(nil)
	for _, t := range targets {
		err := t.Send(context.Background(), notify.Sample(l.Namespace, uuid.NewString(), time.Now()))
		one := testedJSON{Target: t.Name, Sent: err == nil}
		if err != nil {
			one.Error = err.Error()
			failed = append(failed, t.Name)
		}
		tested = append(tested, one)
	}
	if a.JSON() {
		err = print.JSON(a.Stdout, tested)
	} else {
		out := a.NewTable(print.Whole("TARGET"), print.Whole("SENT"), print.Col("ERROR"))
		for _, one := range tested {
			out.Row(one.Target, fmt.Sprint(one.Sent), one.Error)
		}
		err = out.Flush()
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("not taken by %s", strings.Join(failed, ", ")))
	}
	return err
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
