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
	ID, State, Words string
	// Own are the states of this move that it may follow; Older are those of an older one, and "none" for no gate.
	Own, Older []string
	// Turn sets the epoch and the generation as well.
	Turn       bool
	Epoch      int64
	Generation string
	// Copy is the number of the copies that were ended last; 0 for any.
	Copy int64
}

// SetGate carries a step out at one partition, and waits until every replica that the partition's server has now has it: at
// most 2 s. It may be repeated. It returns ErrRefused when the gate is in a state that the
// step may not follow, and locking.ErrUnreachable when replicas lag behind.
func (l *Ledger) SetGate(ctx context.Context, partition int, s GateStep) error {
	k := l.keys[partition]
	args := gateArgs{id: s.ID, state: s.State, own: commas(s.Own), others: commas(s.Older), words: s.Words, generation: s.Generation, copy: s.Copy}
	if s.Turn {
		args.epoch = ms(s.Epoch)
	}
	op := fmt.Sprintf("set the gate of partition %d at %s to %s", partition, redisconn.Addr(l.client), s.State)
	reply, err := l.runEverywhere(ctx, gateScript, []string{k.gate, k.jobs}, &args)
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
