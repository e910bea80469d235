package scheduler

import (
	"math"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// TestWaitsFor names what keeps a pending run, and of two reasons the one that lasts longer.
func TestWaitsFor(t *testing.T) {
	plain := `{"v":1,"name":"a","schedule":"@daily","time_zone":"","ttl_ms":15000}`
	allow := `{"v":1,"name":"a","schedule":"@daily","time_zone":"","overlap":"allow","ttl_ms":15000}`
	paused := ledger.Window{From: 1, To: 500}
	up := holding{owner: "n1"}
	for _, tt := range []struct {
		name, want, def string
		lease           ledger.Lease
		open            string
		pause           ledger.Window
		h               holding
	}{
		{name: "nothing", def: plain, h: up},
		{name: "time", want: " until 1970-01-01T00:00:00.101Z", def: plain, lease: ledger.Lease{Granted: 101}, h: holding{orphan: true}},
		{name: "due now", def: plain, lease: ledger.Lease{Granted: 100}, h: up},
		{name: "no node", want: ": no living node holds the job", def: plain, h: holding{orphan: true}, open: "x"},
		{name: "no node that may", want: ": no living node can run the job", def: plain, open: "x"},
		{name: "held", want: ": job is held by run x", def: plain, open: "x", h: up},
		{name: "held for itself", def: plain, open: "me", h: up},
		{name: "allowed beside it", def: allow, open: "x", h: up},
		{name: "paused", want: ": job is paused", def: plain, pause: paused, lease: ledger.Lease{Holds: true}, open: "x", h: up},
		{name: "paused, after another job", want: ": job is paused", def: plain, pause: paused, lease: ledger.Lease{Trigger: "after"}, open: "x", h: up},
		{name: "paused, an attempt asked for", want: ": job is held by run x", def: plain, pause: paused, lease: ledger.Lease{Trigger: "rerun"}, open: "x", h: up},
		{name: "paused, by hand", def: plain, pause: paused, lease: ledger.Lease{Request: "me"}, h: up},
		{name: "foreign", want: ": job cannot be read by this version", def: `{"v":9}`, h: up},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.lease.Run = "me"
			s := ledger.Stored{Entry: ledger.Entry{Open: tt.open, Pause: tt.pause}, Definition: []byte(tt.def)}
			if got := waitsFor(tt.lease, s, tt.h, 100); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := jobs.ParseDefinition([]byte(allow)); err != nil {
		t.Error(err)
	}
}

// TestListWithAHugeLimit sorts now and then, whatever the limit: twice the largest one is negative.
func TestListWithAHugeLimit(t *testing.T) {
	for _, limit := range []int{math.MaxInt/2 + 1, math.MaxInt} {
		p := picked{RunFilter: RunFilter{Limit: limit}}
		began := time.Now()
		for tick := range int64(20_000) {
			p.row(ledger.Row{Run: "r", Tick: 20_000 - tick, At: 20_000 - tick})
		}
		if took := time.Since(began); len(p.views) != 20_000 || took > 5*time.Second {
			t.Errorf("limit %d: %d rows after %s", limit, len(p.views), took)
		}
	}
}
