package move

import (
	"context"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Open opens the other side with what was copied. It returns ErrRefused before everything is copied, and when what was
// copied is not what either side holds now, and when the clocks differ. Once it has begun it can only be repeated.
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
	_, err = from.led.Advance(ctx, ledger.Step{ID: id, Role: ledger.MoveFrom, Peer: to.name, State: ledger.MoveMoved, Own: []string{ledger.MoveSealed}})
	return err
}

// complete returns ErrRefused unless both sides hold what was copied, and their clocks agree.
func (m *Mover) complete(ctx context.Context, from, to side, id string) error {
	if to.notes.Copied == "" {
		return refuse("not everything is copied to %s; run `move copy` first", to.name)
	}
	same, err := m.same(ctx, from, to)
	if err != nil {
		return err
	}
	if !same {
		return refuse("what was copied is not what %s and %s hold now; run `move copy` again", from.name, to.name)
	}
	if err := m.clocks(ctx); err != nil {
		return err
	}
	return m.drains(ctx, from, to, id)
}

// unlock opens the gates. Before the first, it sees to it that no copy writes any more, and that what is there is what was
// copied; only if it is not, which somebody else must have done, the way back is still free.
func (m *Mover) unlock(ctx context.Context, from, to side, id string) error {
	number, err := to.led.Advance(ctx, ledger.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveOpening,
		Own: []string{ledger.MoveFilling, ledger.MoveOpening}, Count: true})
	if err != nil {
		return err
	}
	begun, err := opened(ctx, to, id)
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
		if err := to.led.SetGate(ctx, p, ledger.GateStep{ID: id, State: "open", Own: []string{"filling"}, Turn: true,
			Epoch: from.control.Epoch, Generation: from.control.Generation}); err != nil {
			return err
		}
	}
	_, err = to.led.Advance(ctx, ledger.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveOpen, Own: []string{ledger.MoveOpening}})
	return err
}

func (m *Mover) settled(ctx context.Context, from, to side, id string, number int64) error {
	if err := to.led.EndCopies(ctx, id, number); err != nil {
		return err
	}
	there, err := digest(ctx, to)
	if err != nil || there == to.notes.Copied {
		return err
	}
	_, err = to.led.Advance(ctx, ledger.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveFilling, Own: []string{ledger.MoveOpening},
		Fields: map[string]string{"copied": ""}})
	if err != nil {
		return err
	}
	return refuse("what %s holds now is not what was copied; run `move copy` again", to.name)
}
