package ledger

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// The states of a partition's gate.
const (
	GateOpen    = "open"
	gateSealed  = "sealed"  // a move has taken the jobs elsewhere, or is about to
	GateFilling = "filling" // a move brings jobs here
	gateBurnt   = "burnt"   // a move that would have brought them was undone

	GateNone          = "none"    // as it is read where there is none
	gateUnknownFormat = "foreign" // as it is read where this version does not understand it
)

// Gate is a partition's gate. Every script that grants, takes in or changes anything reads it
// first. A missing gate is open, and generation "" creates jobs.
type Gate struct {
	Epoch      int64  // of the last promotion of all jobs
	Generation string // the generation that may make new jobs
	State      string
	Move       string // id of the move that had it last
	Words      string // for people: where the jobs are
}

// Gates reads the gates of all partitions, in their order.
func (l *Ledger) Gates(ctx context.Context) ([]Gate, error) {
	read, err := Queue(ctx, l, l.Keys, func(p redis.Pipeliner, k Keys) *redis.StringCmd { return p.Get(ctx, k.Gate) })
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.Explain(ctx, "read the gates", err)
	}
	gates := make([]Gate, len(read))
	for i, cmd := range read {
		if err := cmd.Err(); errors.Is(err, redis.Nil) {
			gates[i].State = GateNone
		} else if err != nil {
			return nil, l.Explain(ctx, "read the gates", err)
		} else if gates[i].ReadGate(cmd.Val()) != nil {
			gates[i] = Gate{State: gateUnknownFormat}
		}
	}
	return gates, nil
}
