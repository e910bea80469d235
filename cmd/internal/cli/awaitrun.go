package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

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
		return usagef("--wait-for: %w", err)
	}
	if w.most <= 0 {
		return usagef("--wait-for %s is not more than 0", w.text)
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
func (a *app) follow(t tool, asked ops.RunView, w waiting) error {
	var unsaid error
	if !a.json() {
		if _, err := fmt.Fprintln(a.stdout, asked.Run); err != nil {
			unsaid = fmt.Errorf("run %s was asked for: %w", asked.Run, err)
		}
		if !w.wait {
			return unsaid
		}
	}
	ctx, get := t.ctx, t.in.GetRun
	if w.wait {
		get = a.await(t)
	}
	if w.most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(t.ctx, w.most)
		defer stop()
	}
	if w.wait && a.json() {
		a.say("waiting for run %s", asked.Run)
	}
	run, err := get(ctx, asked.Run)
	switch {
	case err != nil && over(ctx) && t.ctx.Err() == nil:
		return errors.Join(a.late(t, asked.Run, w.most), unsaid)
	case err != nil && t.ctx.Err() != nil:
		return fmt.Errorf("wait for run %s, which was asked for and goes on: %w", asked.Run, errInterrupted)
	case errors.Is(err, ops.ErrUnknownRun) && !w.wait:
		// Named by --unique, it may have ended so long ago that its row is gone. The id is still
		// known.
		return print.JSON(a.stdout, asked)
	case err != nil:
		return fmt.Errorf("run %s was asked for: %w", asked.Run, err)
	case a.json():
		err = print.JSON(a.stdout, run)
	}
	if err = errors.Join(err, unsaid); !w.wait {
		return err
	}
	words := ending(run, 200)
	if run.NextAttempt != "" {
		words += "; the attempt after it is " + run.NextAttempt // of any number, after a rewind
	}
	if run.Outcome != jobs.OutcomeSucceeded {
		return errors.Join(err, fmt.Errorf("%w: %s", errAwaited, words))
	}
	a.say("the run %s, after %s", words, spec.FormatDuration(run.Duration))
	return err
}

// await waits for a run's end, through outages of Redis too, until interrupted.
func (a *app) await(t tool) func(context.Context, string) (ops.RunView, error) {
	return func(ctx context.Context, id string) (ops.RunView, error) {
		for told := false; ; told = true {
			run, err := t.in.WaitRun(ctx, id)
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

// late returns an error with the state of a run that did not end in time.
func (a *app) late(t tool, id string, most time.Duration) error {
	run, err := t.in.GetRun(t.ctx, id)
	if err != nil {
		return fmt.Errorf("run %s was asked for: %w", id, err)
	}
	if a.json() {
		err = print.JSON(a.stdout, run)
	}
	return errors.Join(fmt.Errorf("%w within %s: it %s; runs get %s shows how it ends", errAwaited, spec.FormatDuration(most), standing(run), id), err)
}
