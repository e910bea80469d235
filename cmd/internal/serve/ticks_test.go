package serve

import (
	"strings"
	"time"

	"testing"

	"github.com/escapement/escapement/scheduler"
)

func TestTickLines(t *testing.T) {
	var out strings.Builder
	tickLines(&out).Started(scheduler.RunEvent{
		Job: "report", Tick: time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600)), Node: "dev-2",
		Token: 1795267334003305, Lag: 840 * time.Microsecond,
	})
	want := "report        tick 2026-01-02T15:04:05.000Z  node dev-2  token 1795267334003305  lag 0.8ms\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	line := tickLine(scheduler.RunEvent{Job: "move", Tick: time.UnixMilli(0), Node: "a", Token: 7, Shard: 3, Shards: 16})
	if want := "move          tick 1970-01-01T00:00:00.000Z  shard 3 of 16  node a  token 7  lag 0.0ms"; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}
