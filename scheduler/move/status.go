package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Next is the step of a move that comes next.
type Next string

// The steps.
const (
	NextSeal  Next = "seal"
	NextCopy  Next = "copy"
	NextOpen  Next = "open"
	NextAbort Next = "abort" // the move is being undone, or the other side has lost it
	NextDone  Next = "done"  // the namespace has moved
)

// Status is the state of a move.
type Status struct {
	Namespace string `json:"namespace"`
	ID        string `json:"id"` // "" when none is under way
	From      Side   `json:"from"`
	To        Side   `json:"to"`
	Digest    string `json:"digest"` // of the copy; "" when none is complete
	Next      Next   `json:"next"`   // "" when unknown, because a side does not answer
	// Problems are why a side could not be read.
	Problems []string `json:"problems"`
}

// Side is one side of a move.
type Side struct {
	Address    string         `json:"address"`
	State      string         `json:"state"` // as the control record notes it; "none" for no namespace, "open" for no move
	Since      *time.Time     `json:"since"` // by its Redis; null when no move is noted
	Partitions int            `json:"partitions"`
	Generation string         `json:"generation"`
	Epoch      int64          `json:"epoch"`
	Gates      map[string]int `json:"gates"` // how many partitions are open, sealed, filling, burnt
	Jobs       int64          `json:"jobs"`
	Running    int64          `json:"running"`
	Pending    int64          `json:"pending"`
}

// Status reads both sides and changes nothing. If one side does not answer, it returns the other
// side's records, with the error.
func (m *Mover) Status(ctx context.Context) (Status, error) {
	s, err := m.status(ctx)
	if err != nil {
		return s, fmt.Errorf("move status: %w", err)
	}
	return s, nil
}

// after is the status after a step. The step's error counts more than the status's.
func (m *Mover) after(ctx context.Context, step string, err error) (Status, error) {
	if err != nil {
		s, _ := m.status(ctx) // as far as it goes
		return s, fmt.Errorf("move %s: %w", step, err)
	}
	return m.Status(ctx)
}

func (m *Mover) status(ctx context.Context) (Status, error) {
	st := Status{Namespace: m.cfg.Namespace, Problems: []string{}, From: Side{Address: m.cfg.FromName}, To: Side{Address: m.cfg.ToName}}
	from, err := m.side(ctx, m.from, m.cfg.FromName)
	if err == nil {
		err = st.From.read(ctx, from)
	}
	to, bad := m.side(ctx, m.to, m.cfg.ToName)
	if bad == nil {
		bad = st.To.read(ctx, to)
	}
	for _, e := range []error{err, bad} {
		if e != nil {
			st.Problems = append(st.Problems, e.Error())
		}
	}
	if err := errors.Join(err, bad); err != nil {
		return st, err
	}
	if from.led == nil {
		return st, m.unused(ctx, from)
	}
	st.ID, st.Digest = m.under(from, to), to.notes.Copied
	st.Next = m.next(from, to, st)
	return st, nil
}

// next is the step that comes next.
func (m *Mover) next(from, to side, st Status) Next {
	here, there := from.state(ledger.MoveFrom, st.ID), to.state(ledger.MoveTo, st.ID)
	switch {
	case here == ledger.MoveMoved:
		return NextDone
	case there == ledger.MoveBurnt || here == ledger.MoveSealed && there == "":
		return NextAbort
	case here == "" && (there == ledger.MoveOpening || there == ledger.MoveOpen):
		return NextSeal // its record was lost
	case there == ledger.MoveOpening || there == ledger.MoveOpen:
		return NextOpen
	case here != ledger.MoveSealed || st.From.Running > 0:
		return NextSeal
	case to.notes.Copied == "":
		return NextCopy
	}
	return NextOpen
}

func (s *Side) read(ctx context.Context, from side) error {
	s.Gates = map[string]int{}
	if from.led == nil {
		s.State = "none"
		return nil
	}
	s.State = "open"
	if from.notes.ID != "" {
		s.State, s.Since = from.notes.State, &from.notes.At
	}
	s.Partitions, s.Generation, s.Epoch = from.led.Partitions(), from.control.Generation, from.control.Epoch
	gates, err := from.led.Gates(ctx)
	if err != nil {
		return err
	}
	for _, g := range gates {
		if g.State == "none" {
			g.State = "open"
		}
		s.Gates[g.State]++
	}
	s.Jobs, s.Running, s.Pending, err = export.Sizes(ctx, from.led)
	return err
}
