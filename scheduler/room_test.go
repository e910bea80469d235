package scheduler

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// What waits because the ledger has no room for it is said, and why, now and again; what waits for another run is not.
func TestNoRoomIsSaid(t *testing.T) {
	for holder, want := range map[string]string{
		ledger.HeldByPartition: "10,000 runs wait in its partition", ledger.HeldByOutbox: "to be told to jobs that follow", "run-1": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			e := readyEngine(t, 1, 1)
			e.log = slog.New(slog.NewTextHandler(&log, nil))
			for range 25 {
				e.held(e.jobs[0], ledger.Claim{Tick: 1}, holder)
				time.Sleep(time.Second)
			}
			said, lines := strings.Count(log.String(), want), strings.Count(log.String(), "\n")
			if want == "" && lines != 0 || want != "" && (said != 3 || lines != 3) {
				t.Errorf("held by %s for 25 s, it said\n%s", holder, &log)
			}
		})
	}
}
