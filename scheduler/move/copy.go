package move

import (
	"context"
	"strconv"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Copy copies the namespace and compares both sides. It returns ErrRefused before the namespace is
// sealed, while runs go on, and once the other side is open. Repeated, it begins anew, unless both
// sides still match the copy.
func (m *Mover) Copy(ctx context.Context) (Status, error) {
	err := m.copy(ctx)
	return m.after(ctx, "copy", err)
}

func (m *Mover) copy(ctx context.Context) error {
	from, to, err := m.sides(ctx)
	if err != nil {
		return err
	}
	id := m.under(from, to)
	if err := m.ready(ctx, from, to, id); err != nil {
		return err
	}
	if s := to.notes.State; s != ledger.MoveFilling {
		return refuse("everything is copied, and %s is %s; run `move open` again", to.name, s)
	}
	if same, err := m.same(ctx, from, to); err != nil || same {
		return err
	}
	number, err := export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveFilling, Own: []string{ledger.MoveFilling}, Count: true,
		Fields: map[string]string{"copied": "", "generation": from.control.Generation, "epoch": strconv.FormatInt(from.control.Epoch, 10)}})
	if err != nil {
		return err
	}
	m.log.Info("move: copy", "namespace", m.cfg.Namespace, "id", id, "from", from.name, "to", to.name, "copy", number)
	there, err := export.Fill(ctx, to.led, id, number, from.led.Partitions())
	if err != nil {
		return err
	}
	was := export.NewDigest()
	left, err := export.Documents(ctx, from.led, func(d export.Document) error {
		was.Add(d)
		return there.Import(ctx, d)
	})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return refuse("%s", strings.Join(describe(left), "; and "))
	}
	if _, err := there.Flush(ctx); err != nil {
		return err
	}
	if err := m.drains(ctx, from, to, id); err != nil {
		return err
	}
	if err := catalog.Copy(ctx, from.led, to.led); err != nil {
		return err
	}
	is, err := digest(ctx, to)
	if err != nil {
		return err
	}
	if is != was.Sum() {
		return refuse("what %s has now is not what %s has (digests %.12s and %.12s): somebody else writes to one of them; run `move copy` again", to.name, from.name, is, was.Sum())
	}
	_, err = export.Advance(ctx, to.led, export.Step{ID: id, Role: ledger.MoveTo, Peer: from.name, State: ledger.MoveFilling, Own: []string{ledger.MoveFilling},
		Fields: map[string]string{"copied": is}})
	return err
}

// ready returns ErrRefused, with the right next step, unless from is sealed by this move, nothing
// runs there, and to is reserved for it.
func (m *Mover) ready(ctx context.Context, from, to side, id string) error {
	switch from.state(ledger.MoveFrom, id) {
	case ledger.MoveSealed, ledger.MoveMoved:
	default:
		return refuse("the namespace is not sealed at %s; run `move seal` first", from.name)
	}
	switch to.state(ledger.MoveTo, id) {
	case "":
		return refuse("%s knows nothing of this move any more; run `move seal` again, or `move abort`", to.name)
	case ledger.MoveBurnt:
		return refuse("this move is being undone; run `move abort` again")
	}
	if from.control.Promoting != "" && to.notes.State == ledger.MoveFilling {
		return refuse("a promotion goes on at %s; finish it with `generations promote`, or run `move abort`", from.name)
	}
	if to.notes.State != ledger.MoveFilling {
		return m.sealed(ctx, from, id)
	}
	return m.nothingRuns(ctx, from, id)
}

// nothingRuns returns ErrRefused unless from is sealed, nothing runs there, and it is the server to
// which the nodes have reported all their runs.
func (m *Mover) nothingRuns(ctx context.Context, from side, id string) error {
	if err := m.sealed(ctx, from, id); err != nil {
		return err
	}
	if err := still(ctx, from); err != nil {
		return err
	}
	return restarted(ctx, from)
}

// same reports whether both sides still match the copy.
func (m *Mover) same(ctx context.Context, from, to side) (bool, error) {
	if to.notes.Copied == "" {
		return false, nil
	}
	for _, s := range []side{from, to} {
		got, err := digest(ctx, s)
		if err != nil || got != to.notes.Copied {
			return false, err
		}
	}
	return true, nil
}

// digest returns the digest of all records that a side holds of the namespace. Records of an
// unknown format are refused.
func digest(ctx context.Context, s side) (string, error) {
	all := export.NewDigest()
	left, err := export.Documents(ctx, s.led, func(d export.Document) error { all.Add(d); return nil })
	if err != nil {
		return "", err
	}
	if len(left) > 0 {
		return "", refuse("%s: %s", s.name, strings.Join(describe(left), "; and "))
	}
	return all.Sum(), nil
}

func (m *Mover) drains(ctx context.Context, from, to side, id string) error {
	drains, err := export.Drains(ctx, from.led)
	if err != nil {
		return err
	}
	return export.SetDrains(ctx, to.led, id, ledger.MoveFilling, drains)
}
