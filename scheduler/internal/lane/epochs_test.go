package lane

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// singleNode is a cluster of one node.
type singleNode struct{ Nodes }

func (singleNode) Living() []sharding.Node { return nil }

// A partition's runs were reported once, and some of them are not restored yet. Nothing is asked of them meanwhile: not
// when another partition comes to the lane, nor when this one leaves it.
func TestPartlyAssertedIsAssertedAnew(t *testing.T) {
	half := func() *epochs {
		lost := make(chan struct{}, 1)
		l := &Lane{Config: &Config{Nodes: singleNode{}, Health: &Health{}, Lost: lost, Clock: &Clock{}}, lanes: &Lanes{Config: Config{Lost: lost}}, clustered: true}
		f := newEpochs(l, ledger.Master{})
		f.epochs[1] = &failover.Epoch{}
		f.sampled(ledger.Sample{Server: "new", Incarnations: map[int]string{1: "x"}})
		f.reached(f.changes, (*failover.Epoch).Asserted, map[string]int64{"run": 1})
		return f
	}
	f := half()
	if epoch, waits := f.keeps(1); epoch != "new/x" || len(waits) != 1 {
		t.Fatalf("runs are kept in %s, and %v wait", epoch, waits)
	}
	other := &failover.Epoch{}
	other.Join("other/x")
	other.Leave()
	f.addPart(2, other)
	f.sampled(ledger.Sample{Server: "new", Incarnations: map[int]string{1: "x", 2: "x"}})
	for part := range 2 {
		if epoch, _ := f.keeps(part + 1); epoch != ledger.Nobody {
			t.Errorf("with another partition, runs of partition %d are kept in %s", part+1, epoch)
		}
	}
	f = half()
	if e := f.removePart(1); e.State() != failover.Asserting || e.ID() != "" {
		t.Errorf("it leaves the lane as %v, %q", e.State(), e.ID())
	}
}

// fresh is a lane on an emptied embedded Redis, of a node that has joined a new namespace.
func fresh(t *testing.T, change func(*ledger.Sample)) (f *epochs, l *ledger.Ledger, client *redis.Client) {
	t.Helper()
	_, client = redistest.StartEmbedded(t)
	var err error
	if l, err = ledger.Open(t.Context(), client, ledger.Config{MaxSkew: time.Minute}); err != nil {
		t.Fatal(err)
	}
	lost := make(chan struct{}, 1)
	restore := func(ctx context.Context, _ []int) error { _, err := l.Restore(ctx, ""); return err }
	c := Config{Lost: lost, Clock: &Clock{}, Ledger: l, Health: &Health{}, FailoverHold: 3 * time.Second, Restore: restore, Log: slog.New(slog.DiscardHandler)}
	lane := &Lane{Config: &c, lanes: &Lanes{Config: c}, breaker: &breaker{}}
	f = newEpochs(lane, ledger.Master{})
	f.epochs[0] = &failover.Epoch{}
	s, err := l.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(&s)
	f.begin(s)
	return f, l, client
}

// A node that knows no other waits on a server that may just have lost what others know: one that has just started, and one in which nodes
// have just found that records were lost. It does not on one that has run for long.
func TestYoung(t *testing.T) {
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
			f, _, _ := fresh(t, func(s *ledger.Sample) {
				if s.Up = c.up; c.after > 0 {
					s.Incarnations[0] = fmt.Sprint("x@", s.Now.Add(-c.after).UnixMilli())
				}
			})
			if got := f.isYoung(); got != c.young {
				t.Errorf("%t, want %t", got, c.young)
			}
			f.release(f.changes)
			if f.isYoung() {
				t.Error("it waits though it claims already")
			}
		})
	}
}

// A sample that a later one has overtaken has no incarnations, and one in which a call failed lacks some: a node waits on after a loss.
func TestYoungWithoutIncarnations(t *testing.T) {
	t.Parallel()
	f, _, _ := fresh(t, func(s *ledger.Sample) {
		s.Up, s.Incarnations[0] = time.Hour, fmt.Sprint("x@", s.Now.UnixMilli())
	})
	if f.sampled(ledger.Sample{Server: f.server, Up: time.Hour, Now: time.Now()}); !f.isYoung() {
		t.Error("it waits no longer")
	}
}

// A Redis was emptied, and a node that knew nothing of it came first: it claims at once. Whoever knew the namespace before begins another
// epoch, in which that node waits too.
func TestLoneNodeAfterALoss(t *testing.T) {
	t.Parallel()
	f, l, client := fresh(t, func(*ledger.Sample) {})
	f.release(f.changes)
	sample := func() (s ledger.Sample, made bool) {
		t.Helper()
		s, err := l.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, made = ledger.MadeAfterLoss(s.Incarnations[0])
		return s, made
	}
	for _, alone := range []bool{true, false} {
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if alone {
			if _, err := ledger.Open(t.Context(), client, ledger.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		s, made := sample()
		if made {
			t.Fatalf("a node that knew nothing made incarnation %q", s.Incarnations[0])
		}
		if f.sampled(s); !f.incarnate(t.Context()) {
			t.Error("the incarnation stays as it is")
		}
		if s, made = sample(); !made {
			t.Errorf("incarnation %q does not say that records were lost", s.Incarnations[0])
		}
		if f.sampled(s); f.incarnate(t.Context()) {
			t.Error("its own incarnation is superseded")
		}
	}
}

// A partition comes to a lane whose runs are all reported, and that is about to claim. Nobody claims from that partition, or renews in it,
// before its epoch is known and runs were reported in it.
func TestPartThatComesDuringAStep(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(f *epochs, changes int){
		"reported": func(f *epochs, changes int) { f.reached(changes, (*failover.Epoch).Asserted, nil) },
		"in place": func(f *epochs, changes int) { f.reached(changes, (*failover.Epoch).Restored, nil) },
		"open":     func(f *epochs, changes int) { f.release(changes) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _ := fresh(t, func(*ledger.Sample) {})
			changes, e := f.changes, &failover.Epoch{}
			e.Join("old/x")
			e.Open()
			e.Leave()
			f.addPart(7, e)
			other := f.epochs[0].State()
			if step(f, changes); f.epochs[0].State() != other {
				t.Errorf("a step that began before takes another partition to %v", f.epochs[0].State())
			}
			if epoch, may := f.claims(7); may {
				t.Errorf("claimed in epoch %q", epoch)
			}
			if epoch, _ := f.keeps(7); epoch != ledger.Nobody {
				t.Errorf("renewed in epoch %q", epoch)
			}
			step(f, f.changes)
			if e.State() != failover.Asserting {
				t.Errorf("%v, though its epoch is not known", e.State())
			}
		})
	}
}

// The view of the nodes is held while this node waits for the others, and no longer: a master that hangs after its epoch has begun holds
// it for FailoverHold.
func TestHeldForAsLongAsNodesAreWaitedFor(t *testing.T) {
	f, _, _ := fresh(t, func(*ledger.Sample) {})
	if !f.held() {
		t.Error("the epoch has just begun, and holds nothing")
	}
	f.since = f.since.Add(-f.l.FailoverHold)
	if f.held() {
		t.Error("it holds the view though nobody is waited for")
	}
}
