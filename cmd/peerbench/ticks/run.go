package ticks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
	"github.com/escapement/escapement/cmd/peerbench/page"
	"github.com/escapement/escapement/cmd/peerbench/peers"
)

// Run measures as the flags in args choose, and prints a table. It returns an error when Escapement
// broke a promise.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	run := describe(ctx, args)
	run.Seconds, run.Rounds = int(o.span/time.Second), o.rounds
	t := &turns{o: o, run: run, left: o.patience, gaveUp: map[string]bool{}}
	for _, m := range o.plan() {
		if t.gaveUp[m.key()] {
			continue
		}
		row, err := t.take(ctx, m)
		if err != nil { // interrupted: the measurements so far are shown, and the documents stay as they are
			t.broken, o.docs = errors.Join(t.broken, err), ""
			break
		}
		run.Rows = append(run.Rows, row)
	}
	fmt.Fprintf(os.Stdout, "\n%s\nClearly better than Escapement:\n\n%s", page.Table(run), page.Behind(run))
	return errors.Join(o.keep(run), t.broken)
}

// verdict is an error when a row of Escapement's shows a broken promise. Rows of other libraries
// are not judged. On a disturbed machine, a tick may start too late to be counted, but never twice
// or early.
func verdict(p peers.Peer, r figures.Row, disturbed bool) error {
	switch {
	case !p.Ours:
		return nil
	case r.Problem != "":
		return fmt.Errorf("%s, %d jobs, round %d: %s", r.Title, r.Jobs, r.Round, r.Problem)
	case r.Twice > 0 || r.Early > 0 || r.Missed > 0 && !disturbed:
		return fmt.Errorf("%s, %d jobs, round %d: of %d ticks %d ran once, %d twice and %d not at all; %d started early",
			r.Title, r.Jobs, r.Round, r.Due, r.Once, r.Twice, r.Missed, r.Early)
	}
	return nil
}

// keep writes the requested files.
func (o options) keep(run figures.Run) (err error) {
	if o.json != "" {
		err = run.Write(o.json)
	}
	if o.docs != "" {
		err = errors.Join(err, page.Update(o.docs, run))
	}
	return err
}
