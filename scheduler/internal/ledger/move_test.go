package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Ids of moves, in their order.
const (
	move1 = "01900000-0000-7000-8000-000000000001"
	move2 = "01900000-0000-7000-8000-000000000002"
	move3 = "01900000-0000-7000-8000-000000000003"
	move4 = "01900000-0000-7000-8000-000000000004"
)

// mover makes the calls of a move on one server, from one namespace to another.
type mover struct {
	t      *testing.T
	ctx    context.Context
	client *redis.Client
}

// does wants a call carried out, not wants it refused.
func (s *mover) does(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

func (s *mover) not(what string, err error) {
	s.t.Helper()
	if !errors.Is(err, ledger.ErrRefused) {
		s.t.Errorf("%s: %v; want it refused", what, err)
	}
}

func (s *mover) is(what string, got, want any) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func (s *mover) open(ns string, partitions int) *ledger.Ledger {
	l, err := ledger.Join(s.ctx, s.client, ledger.Config{Namespace: ns, Partitions: partitions, Generation: "blue"})
	s.does("open "+ns, err)
	return l
}

func (s *mover) reserve(ns, id string, partitions int, burn bool, back string) error {
	return export.Reserve(s.ctx, s.client, export.Reservation{Config: ledger.Config{Namespace: ns, Partitions: partitions}, ID: id, Epoch: 3, Peer: "old", Burn: burn, Back: back})
}

func (s *mover) advance(l *ledger.Ledger, id, role, state string, own, older []string) error {
	_, err := export.Advance(s.ctx, l, export.Step{ID: id, Role: role, Peer: "peer", State: state, Own: own, Older: older})
	return err
}

func (s *mover) seal(l *ledger.Ledger, id string) error {
	return export.SetGate(s.ctx, l, 0, export.GateStep{ID: id, State: "sealed", Words: "new", Older: []string{"none", "open"}})
}

func (s *mover) unseal(l *ledger.Ledger, id string) error {
	return export.SetGate(s.ctx, l, 0, export.GateStep{ID: id, State: "open", Own: []string{"sealed"}, Older: []string{"none", "open"}})
}

func (s *mover) fill(l *ledger.Ledger, p int, id string) error {
	return export.SetGate(s.ctx, l, p, export.GateStep{ID: id, State: "filling", Words: "old, copy 0", Older: []string{"none", "burnt"}})
}

func (s *mover) burn(l *ledger.Ledger, p int, id string) error {
	return export.SetGate(s.ctx, l, p, export.GateStep{ID: id, State: "burnt", Words: "old, copy 0", Own: []string{"filling"}, Older: []string{"none", "burnt"}})
}

var (
	filling  = []string{ledger.MoveFilling}
	fromOpen = []string{"none", "to/open"}
)

func (s *mover) reserving() {
	s.does("reserve", s.reserve("there", move2, 2, false, ""))
	s.does("reserve again", s.reserve("there", move2, 2, false, ""))
	s.not("burn what is reserved by a reservation", s.reserve("there", move2, 2, true, ""))
	s.not("reserve of another move", s.reserve("there", move3, 2, false, ""))
	s.open("alive", 2)
	s.not("reserve where a namespace is", s.reserve("alive", move2, 2, false, ""))
	s.does("burn", s.reserve("burnt", move2, 2, true, ""))
	s.not("reserve what is burnt", s.reserve("burnt", move2, 2, false, ""))
	s.not("reserve of an older move", s.reserve("burnt", move1, 2, false, ""))
	s.not("other partitions", s.reserve("burnt", move3, 3, false, ""))
	s.does("reserve of a newer move", s.reserve("burnt", move3, 2, false, ""))
	gone := s.open("gone", 2)
	s.does("seal", s.advance(gone, move1, ledger.MoveFrom, ledger.MoveSealing, nil, fromOpen))
	s.not("back while it goes", s.reserve("gone", move2, 2, false, move1))
	s.does("moved", s.advance(gone, move1, ledger.MoveFrom, ledger.MoveMoved, []string{ledger.MoveSealing}, nil))
	s.not("back from elsewhere", s.reserve("gone", move2, 2, false, move3))
	s.does("back", s.reserve("gone", move2, 2, false, move1))
	s.does("the clerk sleeps", s.client.HSet(s.ctx, ledger.NamespaceKeys("alive").Control, "promoting", "1|1|green||").Err())
	s.not("seal while a promotion goes on", s.advance(s.open("alive", 2), move1, ledger.MoveFrom, ledger.MoveSealing, nil, fromOpen))
	s.does("lose", s.client.Del(s.ctx, ledger.NamespaceKeys("alive").Control).Err())
	lost := &ledger.Ledger{Client: s.client, Config: ledger.Config{Namespace: "alive"}}
	if err := s.advance(lost, move1, ledger.MoveFrom, ledger.MoveSealing, nil, fromOpen); !errors.Is(err, ledger.ErrNoNamespace) {
		s.t.Errorf("a step without a namespace: %v", err)
	}
}

func (s *mover) copying() {
	ctx := s.ctx
	l := must(ledger.OpenExisting(ctx, s.client, ledger.Config{Namespace: "there"}))
	job, k := jobIn(0), l.Keys[0]
	s.does("plant", s.client.HSet(ctx, k.Jobs, "x", "y").Err())
	s.not("fill what is full", s.fill(l, 0, move2))
	s.does("pull", s.client.Del(ctx, k.Jobs).Err())
	for p := range 2 {
		s.does("fill", s.fill(l, p, move2))
		s.does("fill again", s.fill(l, p, move2))
		s.not("fill by another", s.fill(l, p, move3))
	}
	_, err := export.Fill(ctx, l, move1, 1, 1)
	s.not("copy of another move", err)
	first, err := export.Fill(ctx, l, move2, 1, 1)
	s.does("copy", err)
	if first == nil {
		return
	}
	doc := export.Document{Job: job, Entry: "entry", History: []export.Text{"one", "two"}}
	write := func(i *export.Importer) error {
		noError(s.t, i.Import(ctx, doc))
		_, err := i.Flush(ctx)
		return err
	}
	s.does("write", write(first))
	s.does("write again", write(first))
	s.is("rows of what was written twice", s.client.LLen(ctx, k.History+job).Val(), int64(2))
	s.not("a document of a backup, into what a move fills", write(export.NewImporter(l, 1)))
	gateOfMove := s.client.Get(ctx, k.Gate).Val()
	s.does("another move fills", s.client.Set(ctx, k.Gate, strings.Replace(gateOfMove, move2, move3, 1), 0).Err())
	s.not("a document into what another move fills", write(first))
	s.does("this one again", s.client.Set(ctx, k.Gate, gateOfMove, 0).Err())
	_, err = export.Fill(ctx, l, move2, 2, 1)
	s.does("second copy", err)
	s.not("the first begins late", export.BeginCopy(ctx, l, 0, move2, 1))
	s.is("rows when the second copy has begun", s.client.Exists(ctx, k.History+job).Val(), int64(0))
	s.not("a document of the first copy", write(first))
	s.not("the first wipes late", export.WipePartition(ctx, l, 0, move2, ledger.GateFilling, "1"))
	s.not("wipe what fills", export.Wipe(ctx, l, move2, "burnt"))
	s.not("wipe by another", export.Wipe(ctx, l, move1, "filling"))
	s.does("drains", export.SetDrains(ctx, l, move2, ledger.MoveFilling, map[string]string{"n": "1"}))
	s.not("drains of another", export.SetDrains(ctx, l, move1, ledger.MoveFilling, nil))
	s.not("drains of what is burnt", export.SetDrains(ctx, l, move2, ledger.MoveBurnt, nil))
	s.not("open at once", s.advance(l, move2, ledger.MoveTo, ledger.MoveOpen, []string{ledger.MoveOpening}, nil))
	s.not("opening by another", s.advance(l, move3, ledger.MoveTo, ledger.MoveOpening, filling, nil))
	s.does("opening", s.advance(l, move2, ledger.MoveTo, ledger.MoveOpening, filling, nil))
	s.opening(l)
	s.not("burn what opens", s.advance(l, move2, ledger.MoveTo, ledger.MoveBurnt, filling, nil))
	s.not("drains late", export.SetDrains(ctx, l, move2, ledger.MoveFilling, nil))
	s.not("open a gate by another", export.SetGate(ctx, l, 0, export.GateStep{ID: move3, State: "open", Own: filling}))
	gate := export.GateStep{ID: move2, State: "open", Own: filling, Turn: true, Epoch: 3, Generation: "blue", Copy: 3}
	s.not("open a gate behind which a copy writes", export.SetGate(ctx, l, 0, gate))
	for p := range 2 {
		s.does("the copies end", export.BeginCopy(ctx, l, p, move2, 3))
	}
	gate.Copy = 2
	s.not("an earlier opening opens a gate", export.SetGate(ctx, l, 0, gate))
	gate.Copy = 3
	for p := range 2 {
		s.does("open a gate", export.SetGate(ctx, l, p, gate))
		s.does("and again", export.SetGate(ctx, l, p, gate))
	}
	s.is("gate", s.client.Get(ctx, k.Gate).Val(), "1|3|blue|open|"+move2+"|")
	s.not("fill what is open", s.fill(l, 0, move2))
	s.not("burn what is open", s.burn(l, 0, move2))
	s.not("seal with the id that opened", s.seal(l, move2))
	s.not("copy into what is open", write(first))
	s.not("a copy begins in what is open", export.BeginCopy(ctx, l, 0, move2, 9))
	s.not("wipe what is open", export.Wipe(ctx, l, move2, "burnt"))
	s.does("open", s.advance(l, move2, ledger.MoveTo, ledger.MoveOpen, []string{ledger.MoveOpening}, nil))
	noted := s.client.HGet(ctx, ledger.NamespaceKeys("there").Control, "move").Val()
	s.does("seal what has come", s.advance(l, move3, ledger.MoveFrom, ledger.MoveSealing, nil, fromOpen))
	s.does("undo that", s.advance(l, move3, ledger.MoveFrom, export.MoveUndone, []string{ledger.MoveSealing}, fromOpen))
	s.is("the note after that", s.client.HGet(ctx, ledger.NamespaceKeys("there").Control, "move").Val(), noted)
}

// opening takes the step back: only the last opening may.
func (s *mover) opening(l *ledger.Ledger) {
	step := export.Step{ID: move2, Role: ledger.MoveTo, Peer: "peer", State: ledger.MoveOpening, Own: []string{ledger.MoveFilling, ledger.MoveOpening}, Count: true}
	first, err := export.Advance(s.ctx, l, step)
	s.does("opening, counted", err)
	second, err := export.Advance(s.ctx, l, step)
	s.does("a second opening", err)
	s.is("its number", second, first+1)
	back := export.Step{ID: move2, Role: ledger.MoveTo, Peer: "peer", State: ledger.MoveFilling, Own: []string{ledger.MoveOpening}, Copies: first}
	_, err = export.Advance(s.ctx, l, back)
	s.not("back, by the first opening", err)
	back.Copies = second
	_, err = export.Advance(s.ctx, l, back)
	s.does("back, by the second", err)
	_, err = export.Advance(s.ctx, l, step)
	s.does("opening anew", err)
}

func (s *mover) undoing() {
	l := s.open("here", 1)
	s.does("seal", s.advance(l, move2, ledger.MoveFrom, ledger.MoveSealing, []string{ledger.MoveSealing}, fromOpen))
	_, err := export.Advance(s.ctx, l, export.Step{ID: move2, Role: ledger.MoveFrom, State: ledger.MoveSealing, Own: []string{ledger.MoveSealing}, Fields: map[string]string{"servers": "x"}})
	s.does("note a field", err)
	notes, err := export.ReadMoveNotes(s.ctx, l)
	s.does("read it", err)
	s.is("servers", notes.Servers, "x")
	s.does("seal the gate", s.seal(l, move2))
	s.does("and again", s.seal(l, move2))
	s.is("gate", s.client.Get(s.ctx, l.Keys[0].Gate).Val(), "1|0|blue|sealed|"+move2+"|new")
	s.not("seal by another", s.seal(l, move3))
	s.not("noted by another", s.advance(l, move3, ledger.MoveFrom, ledger.MoveSealing, []string{ledger.MoveSealing}, fromOpen))
	s.not("unseal by another", s.unseal(l, move3))
	s.does("unseal", s.unseal(l, move2))
	s.does("undo", s.advance(l, move2, ledger.MoveFrom, export.MoveUndone, []string{ledger.MoveSealing}, fromOpen))
	s.is("servers after that", s.client.HExists(s.ctx, ledger.NamespaceKeys("here").Control, "servers").Val(), false)
	s.does("undo again", s.advance(l, move2, ledger.MoveFrom, export.MoveUndone, []string{ledger.MoveSealing}, fromOpen))
	s.is("note", s.client.HExists(s.ctx, ledger.NamespaceKeys("here").Control, "move").Val(), false)
	for _, id := range []string{move2, move1} {
		s.not("seal the gate late", s.seal(l, id))
		s.not("note the seal late", s.advance(l, id, ledger.MoveFrom, ledger.MoveSealing, []string{ledger.MoveSealing}, fromOpen))
	}
	s.does("seal by a newer one", s.advance(l, move3, ledger.MoveFrom, ledger.MoveSealing, nil, fromOpen))
	s.does("and its gate", s.seal(l, move3))
	s.not("unseal late", s.unseal(l, move2))
	s.does("undo late", s.advance(l, move2, ledger.MoveFrom, export.MoveUndone, []string{ledger.MoveSealing}, fromOpen))
	s.is("its note", strings.Contains(s.client.HGet(s.ctx, ledger.NamespaceKeys("here").Control, "move").Val(), move3+"|from|sealing"), true)
	there := &ledger.Ledger{Client: s.client, Config: ledger.Config{Namespace: "burnt"}, Keys: []ledger.Keys{ledger.PartitionKeys("burnt", 0)}}
	s.does("fill", s.fill(there, 0, move3))
	s.does("burn", s.burn(there, 0, move3))
	s.not("fill what is burnt", s.fill(there, 0, move3))
	s.not("fill late", s.fill(there, 0, move2))
	s.not("copy into what is burnt", export.BeginCopy(s.ctx, there, 0, move3, 1))
	s.does("plant", s.client.HSet(s.ctx, there.Keys[0].Jobs, "x", "y").Err())
	s.not("wipe of another", export.Wipe(s.ctx, there, move2, "burnt"))
	s.does("wipe", export.Wipe(s.ctx, there, move3, "burnt"))
	s.is("jobs", s.client.Exists(s.ctx, there.Keys[0].Jobs).Val(), int64(0))
	s.does("fill again", s.fill(there, 0, move4))
	s.not("wipe late", export.Wipe(s.ctx, there, move3, "burnt"))
}

// jobIn is a job that lives in one of two partitions.
func jobIn(p int) string {
	for i := 0; ; i++ {
		if job := fmt.Sprint("job-", i); ledger.Partition(job, 2) == p {
			return job
		}
	}
}

// TestMoveScripts: only the current move, and only its newest step, changes anything; a late call,
// or a call of another move, is refused.
func TestMoveScripts(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		s := &mover{t: t, ctx: t.Context(), client: r.client}
		s.reserving()
		s.copying()
		s.undoing()
	})
}

func TestParseMove(t *testing.T) {
	m := ledger.Move{ID: move1, Role: ledger.MoveTo, State: ledger.MoveOpen, Peer: "10.0.0.1:6379", At: time.UnixMilli(noon).UTC()}
	for _, want := range []ledger.Move{{}, m} {
		if got, err := ledger.ParseMove(want.String()); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for _, bad := range []string{"x", "2|a|to|open|b|1", "1|a|to|open|b", "1|a|to|open|b|x", "1||to|open|b|1", "1|a|by|open|b|1", "1|a|to|open|b|1|"} {
		if got, err := ledger.ParseMove(bad); !errors.Is(err, ledger.ErrUnknownFormat) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	from := ledger.Move{ID: move1, Role: ledger.MoveFrom, State: ledger.MoveSealed}
	for _, c := range []struct {
		from, to string
		want     bool
	}{{from.String(), m.String(), true}, {"", m.String(), false}, {from.String(), "", false}, {"", "", false},
		{m.String(), from.String(), false}, {strings.Replace(from.String(), move1, move2, 1), m.String(), false},
		{from.String(), strings.Replace(m.String(), "open", "opening", 1), false}} {
		if got := ledger.HasMoved(ledger.Control{Move: c.from}, ledger.Control{Move: c.to}); got != c.want {
			t.Errorf("from %q to %q: %t", c.from, c.to, got)
		}
	}
}
