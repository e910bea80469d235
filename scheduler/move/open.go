package move

import (
	"context"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Open opens the other side with the copy. It returns ErrRefused before the copy is complete, when
// either side no longer matches the copy, and when the clocks differ. Once it has begun it can only
// be repeated.
func (m *Mover) Open(ctx context.Context) (Status, error) {
	err := m.open(ctx)
	return m.after(ctx, "open", err)
}

func (m *Mover) open(ctx context.Context) error {
	from, to, err := m.sides(ctx)
	if err != nil {
		return err
	}
	id := m.under(from, to)
	if from.state(ledger.MoveFrom, id) == ledger.MoveMoved {
		return nil
	}
	if err := m.ready(ctx, from, to, id); err != nil {
		return err
	}
	if to.notes.State == ledger.MoveFilling {
		if err := m.complete(ctx, from, to, id); err != nil {
			return err
		}
	}
	if to.notes.State != ledger.MoveOpen {
		if err := m.unlock(ctx, from, to, id); err != nil {
			return err
		}
	}
	_, err = export.Advance(ctx, from.led, export.Step{ID: id, Role: ledger.MoveFrom, Peer: to.name, State: ledger.MoveMoved, Own: []string{ledger.MoveSealed}})
	return err
}

// complete returns ErrRefused unless the old side still matches the copy, with nothing running, and
// the clocks agree. The other side is read when no copy writes to it any more.
func (m *Mover) complete(ctx context.Context, from, to side, id string) error {
	if to.notes.Copied == "" {
		return refuse("not everything is copied to %s; run `move copy` first", to.name)
	}
	here, err := digest(ctx, from)
	if err != nil {
		return err
	}
	//guard:open-complete P7 what opens at the other side is what this one holds
	if here != to.notes.Copied {
		return refuse("what was copied is not what %s holds now; run `move copy` again", from.name)
	}
	if err := m.nothingRuns(ctx, from, id); err != nil {
		return err
	}
	if err := m.clocks(ctx); err != nil {
		return err
	}
	return m.drains(ctx, from, to, id)
}

// unlock opens the gates. Before the first, it ensures that no copy writes any more, that no
// earlier opening opens, and that the other side matches the copy. If it does not, another program
// wrote there, and the way back is still free.
func (m *Mover) unlock(ctx context.Context, from, to side, id string) error {
	number, err := export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveOpening,
		Own: []string{ledger.MoveFilling, ledger.MoveOpening}, Count: true})
	if err != nil {
		return err
	}
	begun, err := end(ctx, to, id, number)
	if err != nil {
		return err
	}
	if !begun {
		if err := m.settled(ctx, from, to, id, number); err != nil {
			return err
		}
	}
	m.log.Info("move: open", "namespace", m.cfg.Namespace, "id", id, "from", from.name, "to", to.name)
	for p := range to.led.Partitions() {
		if err := export.SetGate(ctx, to.led, p, export.GateStep{ID: id, State: "open", Own: []string{"filling"}, Turn: true, Copy: number,
			Epoch: from.control.Epoch, Generation: from.control.Generation}); err != nil {
			return err
		}
	}
	_, err = export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveOpen, Own: []string{ledger.MoveOpening}})
	return err
}

// end ends all copies before this number, and the openings that have ended them before; begun
// reports whether one of these openings has opened a gate already.
func end(ctx context.Context, to side, id string, number int64) (begun bool, err error) {
	for p := range to.led.Partitions() {
		err := export.BeginCopy(ctx, to.led, p, id, number)
		if err == nil {
			continue
		}
		gates, bad := to.led.Gates(ctx)
		if !isRefused(err) || bad != nil || gates[p].State != "open" || gates[p].Move != id {
			return begun, err
		}
		begun = true
	}
	return begun, nil
}

func (m *Mover) settled(ctx context.Context, from, to side, id string, number int64) error {
	there, err := digest(ctx, to)
	if err != nil || there == to.notes.Copied {
		return err
	}
	_, err = export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveFilling, Own: []string{ledger.MoveOpening}, Copies: number,
		Fields: map[string]string{"copied": ""}})
	if err != nil {
		return err
	}
	return refuse("what %s holds now is not what was copied; run `move copy` again", to.name)
}
