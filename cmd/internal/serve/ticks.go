package serve

import (
	"fmt"
	"time"

	"io"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler"
)

// tickLines prints one line on out for each run that starts, in one write: several
// nodes share it.
func tickLines(out io.Writer) *scheduler.Hooks {
	return &scheduler.Hooks{Started: func(e scheduler.RunEvent) { fmt.Fprintln(out, tickLine(e)) }}
}

// tickLine is "report  tick 2026-01-02T15:04:05.000Z  node dev-2  token 17..  lag 0.8ms", with "
// shard 3 of 16" behind the tick for one of several shards.
func tickLine(e scheduler.RunEvent) string {
	shard := ""
	if e.Shards > 1 {
		shard = fmt.Sprintf("  shard %d of %d", e.Shard, e.Shards)
	}
	return fmt.Sprintf("%-12s  tick %s%s  node %s  token %d  lag %.1fms",
		e.Job, e.Tick.UTC().Format(print.TimeFormat), shard, e.Node, e.Token, float64(e.Lag)/float64(time.Millisecond))
}
