package lane

import (
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// singleNode is a cluster of one node.
type singleNode struct{ Nodes }

func (singleNode) Living() []sharding.Node { return nil }

// A partition was asserted to a new master once, and some of its runs are not restored yet. Nothing is asked of them there meanwhile: not
// when another partition comes to the lane, nor when this one leaves it.
func TestPartlyAssertedIsAssertedAnew(t *testing.T) {
	half := func() *failover {
		lost := make(chan struct{}, 1)
		l := &Lane{Config: &Config{Nodes: singleNode{}, Health: &Health{}, Lost: lost}, lanes: &Lanes{Config: Config{Lost: lost}}, clustered: true}
		f := newFailoverOf(l, "new")
		f.epochs[1] = &epoch{noticed: "new", asserted: "new", open: "old"}
		f.unrestored, f.unrestoredOf = map[string]int64{"run": 1}, "new"
		return f
	}
	f := half()
	if server, waits := f.keeps(1); server != "new" || len(waits) != 1 {
		t.Fatalf("runs are kept at %s, and %v wait", server, waits)
	}
	f.addPart(2, &epoch{noticed: "other", asserted: "other", restored: "other", open: "other"})
	f.notice("new")
	if server, _ := f.keeps(1); server != ledger.Nobody {
		t.Errorf("with another partition, runs are kept at %s", server)
	}
	if server, _ := f.keeps(2); server != "other" {
		t.Errorf("runs of the other one are kept at %s, which refuses those who do not know it", server)
	}
	f = half()
	if e := f.removePart(1); e.asserted != ledger.Nobody || e.noticed != "" {
		t.Errorf("it leaves the lane as %+v", *e)
	}
}

// newFailoverOf is the failover of a lane whose master has an id.
func newFailoverOf(l *Lane, id string) *failover {
	f := newFailover(l, ledger.Master{})
	f.setID(id)
	return f
}
