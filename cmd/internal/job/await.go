package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// errAwaited is returned when the run that a command waited for did not succeed.
var errAwaited = command.WithCode(command.ExitRunFailed, errors.New("the run did not succeed"))

// againAfter is between two tries to reach a Redis that is away.
const againAfter = time.Second

// waitHelp is for the help of commands that have the flags of waiting.
const waitHelp = `With --wait it returns when this attempt of the run has ended, and exits 7 when it did
not succeed; an attempt that follows it is named, and not waited for. With --wait-for it
waits no longer than that: then it exits 7 too, and the run goes on.`

// waiting is whether a command waits for its run, and how long.
type waiting struct {
	wait bool
	text string
	most time.Duration // 0: no limit
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "return when this attempt of the run has ended")
	cmd.Flags().StringVar(&w.text, "wait-for", "", "as --wait, but wait no longer than `D`, such as 30s or 2h")
}

// read reads --wait-for.
func (w *waiting) read() (err error) {
	if w.text == "" {
		return nil
	}
	w.wait = true
	if w.most, err = spec.ParseDuration(w.text); err != nil {
		return command.Usagef("--wait-for: %w", err)
	}
	if w.most <= 0 {
		return command.Usagef("--wait-for %s is not more than 0", w.text)
	}
	return nil
}

// over reports whether the time of ctx is over. A connection notices its deadline before the
// context does.
func over(ctx context.Context) bool {
	deadline, has := ctx.Deadline()
	return ctx.Err() != nil || has && !time.Now().Before(deadline)
}

// follow prints a requested run: its id, or its record with JSON; with w.wait, when it has ended.
func follow(t command.Tool, requested ops.RunView, w waiting) error {
	var unprinted error
	if !t.JSON() {
		if _, err := fmt.Fprintln(t.Stdout, requested.Run); err != nil {
			unprinted = fmt.Errorf("run %s was asked for: %w", requested.Run, err)
		}
		if !w.wait {
			return unprinted
		}
	}
	limited := t
	if w.most > 0 {
		var stop context.CancelFunc
		limited.Ctx, stop = context.WithTimeout(t.Ctx, w.most)
		defer stop()
	}
	get := func(t command.Tool, id string) (ops.RunView, error) { return t.Client.GetRun(t.Ctx, id) }
	if w.wait {
		get = await
	}
	if w.wait && t.JSON() {
		t.Report("waiting for run %s", requested.Run)
	}
	run, err := get(limited, requested.Run)
	switch {
	case err != nil && over(limited.Ctx) && t.Ctx.Err() == nil:
		return errors.Join(late(t, requested.Run, w.most), unprinted)
	case err != nil && t.Ctx.Err() != nil:
		return fmt.Errorf("wait for run %s, which was asked for and goes on: %w", requested.Run, command.ErrInterrupted)
	case errors.Is(err, ops.ErrUnknownRun) && !w.wait:
		// Named by --unique, it may have ended so long ago that its row is gone. The id is still
		// known.
		return print.JSON(t.Stdout, requested)
	case err != nil:
		return fmt.Errorf("run %s was asked for: %w", requested.Run, err)
	case t.JSON():
		err = print.JSON(t.Stdout, run)
	}
	if err = errors.Join(err, unprinted); !w.wait {
		return err
	}
	words := ending(run, 200)
	if run.NextAttempt != "" {
		words += "; the attempt after it is " + run.NextAttempt // of any number, after a rewind
	}
	if run.Outcome != jobs.OutcomeSucceeded {
		return errors.Join(err, fmt.Errorf("%w: %s", errAwaited, words))
	}
	t.Report("the run %s, after %s", words, spec.FormatDuration(run.Duration))
	return err
}

// await waits for a run's end.
func await(t command.Tool, id string) (run ops.RunView, err error) {
	err = t.Await("run "+id, againAfter, 0, func() (bool, error) {
		run, err = t.Client.WaitRun(t.Ctx, id)
		return err == nil, err
	})
	return run, err
}

// late returns an error with the state of a run that did not end in time.
func late(t command.Tool, id string, most time.Duration) error {
	run, err := t.Client.GetRun(t.Ctx, id)
	if err != nil {
		return fmt.Errorf("run %s was asked for: %w", id, err)
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, run)
	}
	return errors.Join(fmt.Errorf("%w within %s: it %s; runs get %s shows how it ends", errAwaited, spec.FormatDuration(most), standing(run), id), err)
}
