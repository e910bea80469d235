package lane

import (
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// alone is a cluster of one node.
type alone struct{ Nodes }

func (alone) Living() []sharding.Node { return nil }

// A partition was told to a new master once, and some of its runs are left to be told again. Nothing is asked of them there meanwhile: not
// when another partition comes to the lane, nor when this one leaves it.
func TestHalfToldIsToldAnew(t *testing.T) {
	half := func() *failover {
		lost := make(chan struct{}, 1)
		l := &Lane{Config: &Config{Nodes: alone{}, Health: &Health{}, Lost: lost}, lanes: &Lanes{Config: Config{Lost: lost}}, apart: true}
		f := newFailoverOf(l, "new")
		f.epochs[1] = &epoch{noticed: "new", told: "new", open: "old"}
		f.left, f.leftOf = map[string]int64{"run": 1}, "new"
		return f
	}
	f := half()
	if server, waits := f.keeps(1); server != "new" || len(waits) != 1 {
		t.Fatalf("runs are kept at %s, and %v wait", server, waits)
	}
	f.take(2, &epoch{noticed: "other", told: "other", placed: "other", open: "other"})
	f.notice("new")
	if server, _ := f.keeps(1); server != ledger.Nobody {
		t.Errorf("with another partition, runs are kept at %s", server)
	}
	if server, _ := f.keeps(2); server != "other" {
		t.Errorf("runs of the other one are kept at %s, which refuses those who do not know it", server)
	}
	f = half()
	if e := f.give(1); e.told != ledger.Nobody || e.noticed != "" {
		t.Errorf("it leaves the lane as %+v", *e)
	}
}

// newFailoverOf is the failover of a lane whose master has an id.
func newFailoverOf(l *Lane, id string) *failover {
	f := newFailover(l, ledger.Master{})
	f.named(id)
	return f
}
