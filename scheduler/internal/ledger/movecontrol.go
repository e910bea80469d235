package ledger

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Reservation is a move's request for a namespace in the target Redis.
type Reservation struct {
	Config // Namespace, Partitions and Generation of the namespace to be
	ID     string
	Epoch  int64  // of the generation
	Peer   string // address of the Redis that it comes from
	Back   string // id of the move by which the namespace went from there to Peer, "" for none
	Burn   bool   // burn the move there, instead of making room for it
}

type reserveArgs struct {
	ID         string `json:"id"`
	Format     string `json:"format"`
	Partitions int    `json:"partitions,string"`
	Generation string `json:"generation"`
	Epoch      int64  `json:"epoch,string"`
	Peer       string `json:"peer"`
	State      string `json:"state"` // filling or burnt
	Back       string `json:"back"`
}

// Reserve writes the control record of a namespace that a move is going to fill, or that no move
// ever may. It may be repeated. It returns ErrRefused when another namespace is there, unless a
// move to there was undone, or the namespace has moved to where this one comes from.
func Reserve(ctx context.Context, client redis.UniversalClient, r Reservation) error {
	state := MoveFilling
	if r.Burn {
		state = MoveBurnt
	}
	where := redisconn.Addr(client)
	args := reserveArgs{r.ID, format, r.Partitions, r.Generation, r.Epoch, plain(r.Peer), state, r.Back}
	reply, err := reserveScript.call(ctx, client, namespaceTag(r.Namespace), "", args).StringSlice()
	if err != nil {
		return redisconn.Classify("reserve namespace "+r.Namespace+" at "+where, err)
	}
	switch {
	case len(reply) != 2:
		return fmt.Errorf("reserve namespace %s at %s: %d answers", r.Namespace, where, len(reply))
	case reply[0] == "done":
		return nil
	case reply[0] == "partitions":
		return fmt.Errorf("%w: namespace %q at %s has had %s partitions, and nodes that know it still go by that; move it with %s partitions, or under another Redis database",
			ErrRefused, r.Namespace, where, reply[1], reply[1])
	}
	return fmt.Errorf("%w: a namespace %q is at %s already (%s) and a move fills an empty one only; `move status` shows both sides, or name another Redis",
		ErrRefused, r.Namespace, where, cmp.Or(reply[1], "no move has brought it"))
}

// Step is a change of a control record's note of a move.
type Step struct {
	ID   string `json:"id"`
	Role string `json:"role"` // MoveFrom or MoveTo
	Peer string `json:"peer"` // address of the other side
	// State is the next state; MoveUndone removes the note.
	State string `json:"state"`
	// Own are the states of this move that it may follow; Older are those, "role/state", of an
	// older one, and "none".
	Own   []string `json:"own,omitempty"`
	Older []string `json:"older,omitempty"`
	// Count counts one more copy.
	Count bool `json:"count"`
	// Copies is how many copies there must have been; 0 for any.
	Copies int64 `json:"copies,string,omitempty"`
	// Fields are set in the control record as well.
	Fields map[string]string `json:"fields,omitempty"`
}

// MoveUndone is the State of a Step that takes the note of a move away, and remembers its id:
// nothing of that move is carried out from then on.
const MoveUndone = "undone"

// Advance carries out a step that the noted state allows, and waits for replicas as SetGate does;
// it may be repeated. It returns the number of copies that were begun, ErrRefused for a step that
// does not fit, and locking.ErrUnreachable when replicas lag behind.
func (l *Ledger) Advance(ctx context.Context, s Step) (copies int64, err error) {
	s.Peer = plain(s.Peer)
	op := fmt.Sprintf("note %s in the control record of %s at %s", s.State, l.cfg.Namespace, redisconn.Addr(l.client))
	got, err := l.runEverywhere(ctx, advanceScript, namespaceTag(l.cfg.Namespace), s)
	if err != nil {
		return 0, redisconn.Classify(op, err)
	}
	reply, _ := got.([]any)
	if len(reply) != 3 {
		return 0, fmt.Errorf("%s: %d answers", op, len(reply))
	}
	copies, _ = reply[2].(int64)
	switch word := text(reply[0]); word {
	case "done":
		return copies, nil
	case "promoting":
		return 0, fmt.Errorf("%w: %s: a promotion goes on; finish it with `generations promote`, then seal", ErrRefused, op)
	case "gone":
		return 0, fmt.Errorf("%s: %w: its control record was lost; run `move abort`", op, ErrNoNamespace)
	default:
		return 0, fmt.Errorf("%w: %s: %q is noted there; `move status` shows the next step", ErrRefused, op, text(reply[1]))
	}
}

// Drains reads the names that are drained, with the roster's records of them.
func (l *Ledger) Drains(ctx context.Context) (map[string]string, error) {
	got, err := l.client.HGetAll(ctx, drainsKey(l.cfg.Namespace)).Result()
	return got, redisconn.Classify("read the drains", err)
}

type drainsArgs struct {
	ID     string            `json:"id"` // of the move
	State  string            `json:"state"`
	Drains map[string]string `json:"drains,omitempty"`
}

// SetDrains replaces the drained names of a namespace in which the move is in this state; it
// returns ErrRefused in another.
func (l *Ledger) SetDrains(ctx context.Context, id, state string, drains map[string]string) error {
	args := drainsArgs{id, state, drains}
	word, err := drainsScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", args).Text()
	if err != nil {
		return redisconn.Classify("copy the drains", err)
	}
	if word != "done" {
		return fmt.Errorf("%w: copy the drains: %q is noted there; `move status` shows the next step", ErrRefused, word)
	}
	return nil
}
