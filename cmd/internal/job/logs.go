package job

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

func runsLogsCommand(a *command.App) *cobra.Command {
	var follow bool
	logs := a.Command("logs RUN [--follow]", "print what a run wrote", command.Wants("RUN"), func(cmd *cobra.Command, args []string) error {
		if follow && a.JSON() {
			return command.Usagef("--follow prints text as it comes; leave out -o json")
		}
		return a.Connect(func(t command.Tool) error { return runsLogs(t, follow) })(cmd, args)
	})
	logs.Long = `Prints the last 64 KiB that a run wrote to stdout and stderr, of several tries what the last one
wrote. Of a run that goes on it is what had been written up to a second or two ago.

With --follow what follows is printed too, as it comes, until the run has ended; a run that has
not begun yet is waited for. How it ended is said on stderr, and is not the exit code.`
	logs.Example = `escapement runs logs 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d
escapement runs logs 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --follow`
	logs.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	return logs
}

// loggedJSON is the output of runs logs as JSON.
type loggedJSON struct {
	Run    string `json:"run"`
	Output string `json:"output"`
}

func runsLogs(t command.Tool, follow bool) error {
	run, err := t.Client.GetRun(t.Ctx, t.Args[0])
	if err = t.ReportUnreachable(err); err != nil {
		return err
	}
	if t.JSON() {
		return print.JSON(t.Stdout, loggedJSON{run.Run, run.Output})
	}
	if follow {
		return runsFollow(t, run)
	}
	if run.Output == "" {
		t.Report("run %s has written nothing%s", run.Run, map[bool]string{true: " yet"}[run.Ended.IsZero()])
		return nil
	}
	_, err = io.WriteString(t.Stdout, print.Output(run.Output, print.IsTerminal(t.Stdout)))
	return err
}

// followEvery and followMost bound the pause between two looks of --follow, which is ten times a
// look.
const (
	followEvery = time.Second
	followMost  = 10 * time.Second
)

// runsFollow prints a run's output until it has ended, through outages of Redis too.
func runsFollow(t command.Tool, run ops.RunView) error {
	shown, reported := "", false
	for {
		text := run.Output
		if run.Ended.IsZero() {
			text = strings.TrimSuffix(text, string(utf8.RuneError)) // a rune that is not whole yet
		}
		more, cut := fresh(shown, text)
		if cut && shown != "" {
			t.Report("what comes now does not follow at once: the run was tried again, or has written more than %d KiB since", jobs.MaxOutput>>10)
		}
		if _, err := io.WriteString(t.Stdout, print.Printable(more, print.IsTerminal(t.Stdout))); err != nil {
			return err
		}
		if shown = text; !run.Ended.IsZero() {
			break
		}
		before := time.Now()
		next, err := reread(t, run.Run)
		switch {
		case t.Ctx.Err() != nil:
			return fmt.Errorf("follow run %s, which goes on: %w", run.Run, command.ErrInterrupted)
		case next.Run != "": // an error beside it is of other masters
			run = next
		case !errors.Is(err, locking.ErrUnreachable):
			return err
		case !reported:
			reported = true
			t.Report("Redis does not answer; still following run %s, until interrupted: %v", run.Run, err)
		}
		select {
		case <-t.Ctx.Done():
		case <-time.After(min(max(10*time.Since(before), followEvery), followMost)):
		}
	}
	if shown != "" && !strings.HasSuffix(shown, "\n") {
		fmt.Fprintln(t.Stdout)
	}
	t.Report("run %s has ended: %s", run.Run, ending(run, 200))
	return nil
}

// reread reads a run again. A run that was handed back goes on under another id; the requested
// id leads to it.
func reread(t command.Tool, run string) (ops.RunView, error) {
	next, err := t.Client.GetRun(t.Ctx, run)
	if errors.Is(err, ops.ErrUnknownRun) && run != t.Args[0] {
		return t.Client.GetRun(t.Ctx, t.Args[0])
	}
	return next, err
}

// fresh returns the part of a text that was not shown, when only the last jobs.MaxOutput bytes are
// known of either. cut reports that the part does not follow on the shown text.
func fresh(shown, text string) (more string, cut bool) {
	if rest, follows := strings.CutPrefix(text, shown); follows {
		return rest, false
	}
	if len(text) < jobs.MaxOutput-utf8.UTFMax { // it is whole: another try's
		return text, true
	}
	text = strings.TrimLeft(text, string(utf8.RuneError)) // a rune that is not whole any more
	k := overlap(shown, text)
	return text[k:], k == 0
}

// overlap is the length of the longest end of a that b begins with (Knuth, Morris, Pratt).
func overlap(a, b string) int {
	back := make([]int, len(b)+1) // of each prefix of b: its longest proper suffix that is also a prefix
	k := 0
	for i := 1; i < len(b); i++ {
		for k > 0 && b[i] != b[k] {
			k = back[k]
		}
		if b[i] == b[k] {
			k++
		}
		back[i+1] = k
	}
	k = 0
	for i := range len(a) {
		for k > 0 && (k == len(b) || a[i] != b[k]) {
			k = back[k]
		}
		if k < len(b) && a[i] == b[k] {
			k++
		}
	}
	return k
}
