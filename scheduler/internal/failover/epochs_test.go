package failover

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
)

// A partition's runs were reported once, and some of them are not restored yet. Redis gets no calls about them meanwhile: not
// when another partition comes to the lane, nor when this one leaves it.
func TestPartlyAssertedIsAssertedAnew(t *testing.T) {
	t.Parallel()
	half := func() *Epochs {
		es := NewEpochs(Config{Clock: &clock{}, Lost: make(chan struct{}, 1)}, ledger.Master{}, &calls{}, nil)
		es.Add(1, &Epoch{})
		es.Notice(ledger.Sample{Server: "new", Incarnations: map[int]string{1: "x"}})
		es.advance(es.changes, (*Epoch).Asserted, map[string]int64{"run": 1})
		return es
	}
	es := half()
	if epoch, placed := es.Keeps(1, "run"); epoch != "new/x" || placed {
		t.Fatalf("runs are kept in %s, and the run is in place: %t", epoch, placed)
	}
	if _, placed := es.Keeps(1, "another"); !placed {
		t.Fatal("a run that is in place waits")
	}
	other := &Epoch{}
	other.Join("other/x")
	other.Leave()
	es.Add(2, other)
	es.Notice(ledger.Sample{Server: "new", Incarnations: map[int]string{1: "x", 2: "x"}})
	for part := range 2 {
		if epochID, _ := es.Keeps(part + 1); epochID != epoch.Nobody {
			t.Errorf("with another partition, runs of partition %d are kept in %s", part+1, epochID)
		}
	}
	es = half()
	if e := es.Remove(1); e.State() != Asserting || e.ID() != "" {
		t.Errorf("it leaves the lane as %v, %q", e.State(), e.ID())
	}
}

// A node without known peers waits on a server that may just have lost records: a server that has just started, and one in which nodes
// have just found a loss. The node does not wait on a server that has run for long.
func TestYoung(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		up    time.Duration
		after time.Duration // since nodes found the loss; 0: there was none
		young bool
	}{
		"a server that has just started":     {0, 0, true},
		"one that has run for two seconds":   {2 * time.Second, 0, true},
		"one that has run for long":          {time.Hour, 0, false},
		"one that does not say":              {-1, 0, false},
		"a loss that was found a moment ago": {time.Hour, time.Second, true},
		"one that was found long ago":        {time.Hour, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, func(s *ledger.Sample) {
				if s.Up = c.up; c.after > 0 {
					s.Incarnations[0] = fmt.Sprint("x@", s.Now.Add(-c.after).UnixMilli())
				}
			})
			if got := n.isYoung(); got != c.young {
				t.Errorf("%t, want %t", got, c.young)
			}
			n.release(n.changes)
			if n.isYoung() {
				t.Error("it waits though it claims already")
			}
		})
	}
}

// A sample that a later one has overtaken has no incarnations, and one in which a call failed lacks some: a node waits on after a loss.
func TestYoungWithoutIncarnations(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(s *ledger.Sample) {
		s.Up, s.Incarnations[0] = time.Hour, fmt.Sprint("x@", s.Now.UnixMilli())
	})
	if n.Notice(ledger.Sample{Server: n.server, Up: time.Hour, Now: time.Now()}); !n.isYoung() {
		t.Error("it waits no longer")
	}
}

// A Redis was emptied, and a node that was new came first: that node claims at once. A node of the time before begins another
// epoch, in which the new node waits too.
func TestLoneNodeAfterALoss(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	n.release(n.changes)
	sample := func() (s ledger.Sample, made bool) {
		s = n.sample(t)
		_, made = ledger.MadeAfterLoss(s.Incarnations[0])
		return s, made
	}
	for _, alone := range []bool{true, false} {
		if err := n.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if alone {
			if _, err := ledger.Join(t.Context(), n.client, ledger.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		s, made := sample()
		if made {
			t.Fatalf("a node that knew nothing made incarnation %q", s.Incarnations[0])
		}
		if n.Notice(s); !n.incarnate(t.Context()) {
			t.Error("the incarnation stays as it is")
		}
		if s, made = sample(); !made {
			t.Errorf("incarnation %q does not say that records were lost", s.Incarnations[0])
		}
		if n.Notice(s); n.incarnate(t.Context()) {
			t.Error("its own incarnation is superseded")
		}
	}
}

// A partition comes to a lane whose runs are all reported, and that is about to claim. No node claims from that partition, or renews in it,
// before its epoch is known and runs were reported in it.
func TestPartThatComesDuringAStep(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(n *node, changes int){
		"reported": func(n *node, changes int) { n.advance(changes, (*Epoch).Asserted, nil) },
		"in place": func(n *node, changes int) { n.advance(changes, (*Epoch).Restored, nil) },
		"open":     func(n *node, changes int) { n.release(changes) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, same)
			changes, e := n.changes, &Epoch{}
			e.Join("old/x")
			e.Open()
			e.Leave()
			n.Add(7, e)
			other := n.state()
			if step(n, changes); n.state() != other {
				t.Errorf("a step that began before takes another partition to %v", n.state())
			}
			if epoch, may := n.Claims(7); may {
				t.Errorf("claimed in epoch %q", epoch)
			}
			if epochID, _ := n.Keeps(7); epochID != epoch.Nobody {
				t.Errorf("renewed in epoch %q", epochID)
			}
			step(n, n.changes)
			if e.State() != Asserting {
				t.Errorf("%v, though its epoch is not known", e.State())
			}
		})
	}
}

// The view of the nodes is held while this node waits for the other nodes, and no longer: a master that hangs after its epoch has begun holds
// it for Hold.
func TestHeldForAsLongAsNodesAreWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	if !n.Held() {
		t.Error("the epoch has just begun, and holds nothing")
	}
	n.since = n.since.Add(-n.Hold)
	if n.Held() {
		t.Error("it holds the view though nobody is waited for")
	}
}

// The id of a master of a Cluster is read at the master's own address.
func TestIdentify(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	n.Remove(0)
	if _, ok := n.Identify(t.Context()); ok || n.calls.unknown != 0 {
		t.Error("a master without partitions is asked")
	}
	n.Add(0, &Epoch{})
	n.SetRoute(ledger.Master{})
	if _, ok := n.Identify(t.Context()); ok || n.Identified() || n.calls.unknown != 1 {
		t.Errorf("a master that the client does not know: identified %t, %d times unknown", n.Identified(), n.calls.unknown)
	}
	route, err := n.led.Master(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	n.SetRoute(route)
	if n.Check(t.Context()); !n.Identified() || n.EpochID(0) == epoch.Nobody || n.Route() != route {
		t.Errorf("its epoch is %s", n.EpochID(0))
	}
	before := n.EpochID(0)
	n.redis.SetRunID("another")
	n.redis.RefuseWrites("LOADING Redis is loading the dataset in memory")
	if n.Check(t.Context()); n.Identified() || n.EpochID(0) != before {
		t.Error("a new server that takes no writes yet is another epoch")
	}
	n.redis.RefuseWrites("")
	if n.Check(t.Context()); n.EpochID(0) == before {
		t.Error("a new server is no other epoch")
	}
}
