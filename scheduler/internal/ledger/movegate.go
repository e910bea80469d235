package ledger

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking/redisconn"
)

// Gate is a partition's gate, as a move sees it.
type Gate struct {
	State string // open, sealed, filling, burnt; none when there is no gate, which is open as well; foreign
	Move  string // id of the move that had it last
}

// Gates reads the gates of all partitions, in their order.
func (l *Ledger) Gates(ctx context.Context) ([]Gate, error) {
	read, err := l.readGates(ctx)
	gates := make([]Gate, len(read))
	for i, g := range read {
		gates[i] = Gate{g.state, g.move}
	}
	return gates, err
}

// GateStep takes gates from one state to another for one step of a move.
type GateStep struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Words string `json:"words"` // for people: where the jobs are
	// Own are the states of this move that the step may follow; Older are an older move's states,
	// and "none" for no gate.
	Own   []string `json:"own,omitempty"`
	Older []string `json:"older,omitempty"`
	// Turn sets the epoch and the generation as well.
	Turn       bool   `json:"turn"`
	Epoch      int64  `json:"epoch,string"`
	Generation string `json:"generation"`
	// Copy is the number of the copies that were ended last; 0 for any.
	Copy int64 `json:"copy,string,omitempty"`
}

// SetGate carries out a step at one partition, and waits at most 2 s until every replica of the
// partition's server has it. It may be repeated. It returns ErrRefused for a gate in another state,
// and locking.ErrUnreachable when replicas lag behind.
func (l *Ledger) SetGate(ctx context.Context, partition int, s GateStep) error {
	s.Words = plain(s.Words)
	op := fmt.Sprintf("set the gate of partition %d at %s to %s", partition, redisconn.Addr(l.client), s.State)
	reply, err := l.runEverywhere(ctx, gateScript, l.keys[partition].tag, s)
	word := text(reply)
	switch {
	case err != nil:
		return redisconn.Classify(op, err)
	case word == "done":
		return nil
	case word == "full":
		return fmt.Errorf("%w: %s: jobs lie there already", ErrRefused, op)
	case word == "foreign":
		return fmt.Errorf("%s: %w", op, ErrUnknownFormat)
	}
	return fmt.Errorf("%w: %s: it is %q; `move status` shows the next step", ErrRefused, op, word)
}
