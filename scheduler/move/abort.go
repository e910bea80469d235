package move

import (
	"cmp"
	"context"
	"fmt"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Abort undoes a move that is not open yet: it burns the move at the other side, removes the copy,
// and opens this side again. It returns ErrRefused once the other side opens, because the way back
// is then a move back, and when the other side cannot be reached: a command that opens it may be on
// its way.
func (m *Mover) Abort(ctx context.Context) (Status, error) {
	err := m.abort(ctx)
	return m.after(ctx, "abort", err)
}

func (m *Mover) abort(ctx context.Context) error {
	if _, err := m.side(ctx, m.to, m.cfg.ToName); err != nil {
		return fmt.Errorf("%w: the move must be burnt at %s before the seal is lifted, or a late `move open` would open both sides; mend that, or start an empty Redis at the same address, and run `move abort` again: %w",
			ledger.ErrRefused, m.cfg.ToName, err)
	}
	from, to, err := m.sides(ctx)
	if err != nil {
		return err
	}
	id := m.under(from, to)
	if id == "" && to.led != nil && to.notes.Role == ledger.MoveTo && to.notes.State == ledger.MoveBurnt && to.notes.Peer == from.name {
		if to.notes.ID == from.notes.Undone {
			return nil
		}
		if to.notes.ID > max(from.notes.ID, from.notes.Undone) {
			id = to.notes.ID
		}
	}
	if m.stray(from, to, id) {
		m.log.Info("move: abort", "namespace", m.cfg.Namespace, "id", to.notes.ID, "only", to.name)
		return m.burn(ctx, from, to, to.notes.ID)
	}
	if err := m.astray(from, to, id); err != nil {
		return err
	}
	switch {
	case id == "":
		return refuse("no move from %s to %s is under way", from.name, to.name)
	case from.state(ledger.MoveFrom, id) == ledger.MoveMoved:
		return refuse("the namespace has moved to %s; to get it back, move it from there to here", from.notes.Peer)
	}
	m.log.Info("move: abort", "namespace", m.cfg.Namespace, "id", id, "from", from.name, "to", to.name)
	//guard:undo-burns-first P7 the other side can never be opened any more when this one opens again
	err = m.burn(ctx, from, to, id)
	if err != nil {
		return err
	}
	for p := range from.led.Partitions() {
		if err := export.SetGate(ctx, from.led, p, export.GateStep{ID: id, State: "open", Own: []string{"sealed"}, Older: []string{"none", "open"}}); err != nil {
			return err
		}
	}
	_, err = export.Advance(ctx, from.led, export.Step{ID: id, Role: ledger.MoveFrom, State: export.MoveUndone,
		Own: []string{ledger.MoveSealing, ledger.MoveSealed}, Older: []string{"none", "to/open"}})
	return err
}

// stray reports whether to is reserved by a seal that lost against another one, which goes
// elsewhere, or whether its burning was not completed. It can be burnt alone: this side has no
// record of it.
func (m *Mover) stray(from, to side, id string) bool {
	n := to.notes
	if to.led == nil || n.Role != ledger.MoveTo || n.Peer != from.name || n.ID == id || n.Copied != "" {
		return false
	}
	return n.State == ledger.MoveFilling || n.State == ledger.MoveBurnt && to.has("filling", n.ID)
}

// burn ensures that the move can never be opened at the other side, and that no record of it is
// left there.
func (m *Mover) burn(ctx context.Context, from, to side, id string) error {
	if to.state(ledger.MoveTo, id) == "" {
		n, err := m.partitions(from, to)
		if err != nil {
			return err
		}
		r := export.Reservation{Config: ledger.Config{Namespace: m.cfg.Namespace, Partitions: n}, ID: id, Peer: from.name, Burn: true}
		taken := export.Reserve(ctx, m.to, r)
		if taken != nil && !isRefused(taken) {
			return taken
		}
		if to, err = m.side(ctx, m.to, to.name); err != nil {
			return err
		}
		switch {
		case to.state(ledger.MoveTo, id) != "": // burnt now; or reserved meanwhile, by a seal, and perhaps opened
		case taken != nil && to.notes.Role == ledger.MoveTo && to.notes.ID > id:
			return nil // a later move has taken the place: nothing of this one can be opened there
		default:
			return refuse("%s has a namespace %q of its own (%s), and while both are open each job would run twice; stop its nodes and delete it, or name an empty Redis with --to at the same address, and run `move abort` again",
				to.name, m.cfg.Namespace, cmp.Or(to.notes.String(), "no move has brought it"))
		}
	}
	s := to.notes.State
	if s == ledger.MoveOpening || s == ledger.MoveOpen {
		return refuse("%s is %s; run `move open` again, then move the namespace back", to.name, s)
	}
	if to.has("open", id) {
		return refuse("%s is %s, and yet a partition there is open; run `move copy` and `move open`, then move the namespace back", to.name, s)
	}
	_, err := export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveBurnt, Own: []string{ledger.MoveFilling}})
	if err != nil {
		return err
	}
	for p := range to.led.Partitions() {
		if err := export.SetGate(ctx, to.led, p, export.GateStep{ID: id, State: "burnt", Words: from.name, Own: []string{"filling"}, Older: []string{"none", "burnt", "sealed"}}); err != nil {
			return err
		}
	}
	if err := export.SetDrains(ctx, to.led, id, ledger.MoveBurnt, nil); err != nil {
		return err
	}
	return export.Wipe(ctx, to.led, id, "burnt")
}
