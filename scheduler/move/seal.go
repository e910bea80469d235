package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// SealOptions decide about the runs that are going.
type SealOptions struct {
	// Drain is how long to wait for them; 0 is 30 s, and less than 0 not at all.
	Drain time.Duration
	// CancelRunning orders their nodes to end them at once.
	CancelRunning bool
	// Begins is called once, after the check of both sides and before any change. Default: nothing.
	Begins func()
}

// Seal reserves the place at the other side, closes this one and waits until nothing runs. If runs
// are left after the drain time, it returns ErrRefused with the runs and the next step. The
// namespace is closed even then: until Open, Abort can open it again. Seal may be repeated.
func (m *Mover) Seal(ctx context.Context, o SealOptions) (Status, error) {
	err := m.seal(ctx, o)
	return m.after(ctx, "seal", err)
}

func (m *Mover) seal(ctx context.Context, o SealOptions) error {
	from, to, err := m.sides(ctx)
	if err != nil {
		return err
	}
	id := m.under(from, to)
	if err := m.astray(from, to, id); err != nil {
		return err
	}
	noted := from.state(ledger.MoveFrom, id) != ""
	begun := slices.Contains([]string{ledger.MoveOpening, ledger.MoveOpen}, to.state(ledger.MoveTo, id))
	switch {
	case from.state(ledger.MoveFrom, id) == ledger.MoveMoved:
		return refuse("the namespace has moved to %s already; `move status` shows both sides", from.notes.Peer)
	case begun && noted:
		return refuse("%s is being opened already; run `move open` again", to.name)
	case to.state(ledger.MoveTo, id) == ledger.MoveBurnt:
		return refuse("this move is being undone; run `move abort` again")
	}
	if !noted && !begun { // else the record was lost, and is written again
		ways, err := m.obstacles(ctx, from, to)
		if err != nil {
			return err
		}
		if len(ways) > 0 {
			return refuse("%s", strings.Join(ways, "; and "))
		}
	}
	back := m.back(from, to)
	if id == "" {
		if id, err = m.newID(ctx, from, to); err != nil {
			return err
		}
	}
	if o.Begins != nil {
		o.Begins()
	}
	m.log.Info("move: seal", "namespace", m.cfg.Namespace, "id", id, "from", from.name, "to", to.name)
	if !begun {
		if err := m.reserve(ctx, from, to, id, back); err != nil {
			return err
		}
	}
	if err := m.close(ctx, from, to, id); err != nil {
		return err
	}
	return m.drain(ctx, from, o)
}

// reserve makes the namespace at the other side, closed and empty: a move back wipes earlier
// records there.
func (m *Mover) reserve(ctx context.Context, from, to side, id, back string) error {
	n, err := m.partitions(from, to)
	if err != nil {
		return err
	}
	r := export.Reservation{Config: ledger.Config{Namespace: m.cfg.Namespace, Partitions: n, Generation: from.control.Generation}, ID: id,
		Epoch: from.control.Epoch, Peer: from.name, Back: back}
	if err := export.Reserve(ctx, m.to, r); err != nil {
		return err
	}
	if to, err = m.side(ctx, m.to, to.name); err != nil {
		return err
	}
	gates, err := to.led.Gates(ctx)
	if err != nil {
		return err
	}
	for p, g := range gates {
		if g.State == "sealed" && g.Move != id {
			if err := export.WipePartition(ctx, to.led, p, g.Move, g.State, ""); err != nil {
				return err
			}
		}
		err := export.SetGate(ctx, to.led, p, export.GateStep{ID: id, State: "filling", Words: from.name + ", copy 0", Older: []string{"none", "burnt", "sealed"}})
		if err != nil {
			return err
		}
	}
	return nil
}

// close seals the partitions, confirmed by all replicas, reads the seals back, and records the
// servers to which nodes had reported all their runs.
func (m *Mover) close(ctx context.Context, from, to side, id string) error {
	_, err := export.Advance(ctx, from.led, export.Step{ID: id, Role: ledger.MoveFrom, Peer: to.name, State: ledger.MoveSealing,
		Own: []string{ledger.MoveSealing}, Older: []string{"none", "to/open"}})
	if err != nil && from.state(ledger.MoveFrom, id) != ledger.MoveSealed {
		return err
	}
	for p := range from.led.Partitions() {
		if err := export.SetGate(ctx, from.led, p, export.GateStep{ID: id, State: "sealed", Words: to.name, Older: []string{"none", "open"}}); err != nil {
			return fmt.Errorf("%w; not all partitions are sealed, run `move seal` again, or `move abort`", err)
		}
	}
	if err := m.sealed(ctx, from, id); err != nil {
		return err
	}
	servers, err := hold(ctx, from)
	if err != nil {
		return err
	}
	_, err = export.Advance(ctx, from.led, export.Step{ID: id, Role: ledger.MoveFrom, Peer: to.name, State: ledger.MoveSealed, Own: []string{ledger.MoveSealing, ledger.MoveSealed},
		Fields: map[string]string{"servers": servers}})
	return err
}

// failoverHold is the default of scheduler.Config.FailoverHold.
const failoverHold = 3 * time.Second

// hold waits until nodes have reported all their runs to the server, which may have lost them in a
// failover: at most as long as nodes claim nothing for that reason. It returns the servers.
func hold(ctx context.Context, from side) (servers string, err error) {
	begin := time.Now()
	for first := true; ; first = false {
		now, err := export.Servers(ctx, from.led)
		if err != nil {
			return "", err
		}
		if first || now != servers {
			servers, begin = now, time.Now()
		}
		if placed, err := export.Placed(ctx, from.led, servers); err != nil || placed || time.Since(begin) >= failoverHold {
			return servers, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// restarted returns ErrRefused when from is no longer the sealed server: its nodes report its
// losses again.
func restarted(ctx context.Context, from side) error {
	servers, err := export.Servers(ctx, from.led)
	if err == nil && servers != from.notes.Servers {
		return refuse("the old Redis, %s, was restarted or failed over since it was sealed, and its nodes may have something to tell it; run `move seal` and `move copy` again", from.name)
	}
	return err
}

// sealed reads the gates back and returns ErrRefused if one is not sealed by this move.
func (m *Mover) sealed(ctx context.Context, from side, id string) error {
	gates, err := from.led.Gates(ctx)
	if err != nil {
		return err
	}
	for p, g := range gates {
		if g.State != "sealed" || g.Move != id {
			return refuse("partition %d at %s is not sealed (%s); run `move seal` again", p, from.name, g.State)
		}
	}
	return nil
}

// still returns ErrRefused while runs go on at from.
func still(ctx context.Context, from side) error {
	running, err := export.Running(ctx, from.led)
	if err == nil && len(running) > 0 {
		err = goOn(running)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from.name, err)
	}
	return nil
}

// goOn is the error that names runs.
func goOn(running []ledger.Run) error {
	var names []string
	for i, l := range running {
		if i == 10 {
			names = append(names, fmt.Sprintf("and %d more", len(running)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s (run %s, node %s)", l.Job, l.ID, l.NodeName))
	}
	runs := fmt.Sprintf("%d runs go", len(running))
	if len(running) == 1 {
		runs = "1 run goes"
	}
	return refuse("%s on: %s; run `move seal` again, or with --cancel-running", runs, strings.Join(names, ", "))
}

func isRefused(err error) bool       { return errors.Is(err, ledger.ErrRefused) }
func isUnknownFormat(err error) bool { return errors.Is(err, ledger.ErrUnknownFormat) }
