package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The states of a partition's gate.
const (
	gateOpen    = "open"
	gateSealed  = "sealed"  // a move has taken the jobs elsewhere, or is about to
	gateFilling = "filling" // a move brings jobs here
	gateBurnt   = "burnt"   // a move that would have brought them was undone

	gateNone          = "none"    // as it is read where there is none
	gateUnknownFormat = "foreign" // as it is read where this version does not understand it
)

// gate is a partition's gate. Every script that grants, takes in or changes anything reads it
// first. A missing gate is open, and generation "" creates jobs.
type gate struct {
	epoch      int64  // of the last promotion of all jobs
	generation string // the generation that may make new jobs
	state      string
	move       string // id of the move that closed it
	words      string // for people: where the jobs are
}

// readGates reads the gates of all partitions, in their order.
func (l *Ledger) readGates(ctx context.Context) ([]gate, error) {
	read := make([]*redis.StringCmd, len(l.keys))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range l.keys {
			read[i] = p.Get(ctx, k.gate)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.explain(ctx, "read the gates", err)
	}
	gates := make([]gate, len(read))
	for i, cmd := range read {
		if err := cmd.Err(); errors.Is(err, redis.Nil) {
			gates[i].state = gateNone
		} else if err != nil {
			return nil, l.explain(ctx, "read the gates", err)
		} else if gates[i].readGate(cmd.Val()) != nil {
			gates[i] = gate{state: gateUnknownFormat}
		}
	}
	return gates, nil
}

// ClosedError is ErrClosed with the facts. It is ErrRefused as well.
type ClosedError struct {
	// State is sealed, filling or burnt; or foreign, when this version cannot read why.
	State string
	// Move is the id of the move that has closed the namespace.
	Move string
	// Where is the address of the Redis that the move goes to (sealed) or comes from (filling).
	Where string
}

// ClosedBy reads the answer of a closed partition.
func ClosedBy(answer string) *ClosedError {
	f := strings.SplitN(answer, "|", 3)
	f = append(f, "", "", "")
	return &ClosedError{State: f[0], Move: f[1], Where: f[2]}
}

// Error returns the state of the gate, and the next step for the caller.
func (e *ClosedError) Error() string {
	switch e.State {
	case gateSealed:
		return fmt.Sprintf("%v: its jobs move to %s, or have moved; use that Redis, or look with `move status`", ErrClosed, e.Where)
	case gateFilling:
		return fmt.Sprintf("%v: its jobs are being moved here from %s; wait for `move open`, or look with `move status`", ErrClosed, e.Where)
	case gateBurnt:
		return fmt.Sprintf("%v: a move from %s to here was undone; use that Redis", ErrClosed, e.Where)
	}
	return fmt.Sprintf("%v: %v; update this program", ErrClosed, ErrUnknownFormat)
}

// Unwrap makes errors.Is find ErrClosed, and with it ErrRefused.
func (e *ClosedError) Unwrap() error { return ErrClosed }
