package audit

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// A run by hand that was granted and began may be found waiting only where Redis has lost the grant since.
func TestGrantThatRedisHasLost(t *testing.T) {
	began := time.UnixMilli(1_000_000)
	for name, c := range map[string]struct {
		lost []Disturbance
		want int
	}{
		"Redis has lost the grant": {[]Disturbance{{Span: Span{From: began, Until: began}, Loses: true}}, 0},
		"Redis has lost nothing":   {nil, 1},
	} {
		tr := &trial{Case: &Case{Disturbed: c.lost, Read: began.Add(time.Minute)}, report: &Report{}, job: Job{Name: "job"}}
		r := &run{id: "hand", at: -1, lease: &ledger.Lease{Job: "job", Run: "hand", Tick: 1, Attempt: 1}}
		tr.recorded(r, Write{At: began, Job: "job", Tick: time.UnixMilli(1), Run: "hand", Token: 7, Node: "n", Attempt: 1, Shards: 1, Phase: Start})
		if len(tr.report.Findings) != c.want {
			t.Errorf("%s: %v", name, tr.report.Findings)
		}
	}
}
