package ticks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// turns measures one contender after the other while the machine is quiet.
type turns struct {
	o      options
	run    figures.Run
	left   time.Duration   // how long it may still wait and repeat
	gaveUp map[string]bool // contenders that did not keep up, by number of jobs: not measured again
	broken error           // broken promises of Escapement
}

// take measures once, and again where other processes disturbed it and there is time left.
func (t *turns) take(ctx context.Context, m measurement) (figures.Row, error) {
	for {
		t.await(ctx)
		begun := time.Now()
		row, err := measure(ctx, t.o, m)
		if ctx.Err() != nil {
			return row, context.Cause(ctx)
		}
		if err != nil {
			row.Problem = err.Error()
		}
		disturbed := t.run.Disturbed(row)
		again := disturbed && t.left > 0
		t.broken = errors.Join(t.broken, verdict(m.peer, row, again))
		progress(row, again)
		if again {
			t.left -= time.Since(begun)
			continue
		}
		// A disturbed peer is given another chance in the next round.
		t.gaveUp[m.key()] = !row.Survived && !disturbed && !m.peer.Ours
		return row, nil
	}
}

// await waits until other processes leave the machine alone, or the patience is used up.
func (t *turns) await(ctx context.Context) {
	const look = time.Second
	for t.left > 0 && ctx.Err() == nil {
		before := busy()
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
		if busy()-before <= figures.Calm*look.Seconds()*float64(runtime.NumCPU()) {
			return
		}
		t.left -= look
	}
}

// progress prints the result of one measurement.
func progress(r figures.Row, again bool) {
	more := r.Problem
	if again {
		more += "others had the machine: once more"
	}
	fmt.Fprintf(os.Stderr, "round %d  %-28s %5d jobs  once %d of %d, twice %d, missed %d, early %d  p50 %.2f p99 %.2f max %.2f ms  others %.1f s  %s\n",
		r.Round, r.Title, r.Jobs, r.Once, r.Due, r.Twice, r.Missed, r.Early, r.P50, r.P99, r.Max, r.OthersCPU, more)
}
