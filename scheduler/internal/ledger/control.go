package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Control is the namespace's control record.
type Control struct {
	// Partitions is the number of hash slots' worth of jobs, fixed when the namespace was created.
	Partitions int
	// Generation is the active one: of the first node ever, or of the last promotion of all jobs.
	// The generation of a single job is in its definition.
	Generation string
	// Epoch counts promotions.
	Epoch int64
	// Promoting is the promotion that has begun and not ended, as written by it; "" for none.
	Promoting string
	// Move is the note of a move to or from another Redis; "" for none.
	Move string
}

// Control reads the control record.
func (l *Ledger) Control(ctx context.Context) (Control, error) {
	return control(ctx, l.Client, l.Config, false)
}

// Restore writes the lost parts of the control record, with active as the active generation, and of
// gates and incarnations. It returns the stored record, also with an UnreachableError. It returns
// ErrRefused for another number of partitions.
func (l *Ledger) Restore(ctx context.Context, active string) (Control, error) {
	stored, err := l.RestoreControl(ctx, active)
	if err == nil {
		err = l.RestoreParts(ctx, stored, l.All())
	}
	return stored, err
}

// RestoreControl is Restore for the control record.
func (l *Ledger) RestoreControl(ctx context.Context, active string) (Control, error) {
	cfg := l.Config
	cfg.Generation = active
	stored, err := control(ctx, l.Client, cfg, true)
	if err == nil {
		err = l.fits(stored)
	}
	return stored, err
}

// RestoreParts is Restore for the gates and incarnations of some partitions. The record must have
// been read after they were lost: a move may have closed the namespace before.
func (l *Ledger) RestoreParts(ctx context.Context, stored Control, parts []int) error {
	return l.incarnate(ctx, stored, parts, true)
}

// Reread is Restore where a move may have taken the namespace away: it writes nothing, and returns
// ErrNoNamespace without a control record.
func (l *Ledger) Reread(ctx context.Context) (Control, error) {
	stored, err := l.Control(ctx)
	if err == nil {
		err = l.fits(stored)
	}
	return stored, err
}

// fits refuses a control record that differs from the one this ledger was opened with.
func (l *Ledger) fits(stored Control) error {
	if stored.Partitions == len(l.Keys) {
		return nil
	}
	return fmt.Errorf("%w: namespace %q was created anew with %d partitions while this node works with %d; restart the node with partitions set to %d",
		ErrRefused, l.Config.Namespace, stored.Partitions, len(l.Keys), stored.Partitions)
}

// AtReplica returns ErrNoNamespace of a tool as an error of the server, where the server is a
// replica: the namespace may be at its master. Any other error is returned as it is.
func AtReplica(ctx context.Context, client redis.UniversalClient, namespace string, err error) error {
	if errors.Is(err, ErrNoNamespace) {
		if t := redisconn.Replica(ctx, client, fmt.Errorf("%w: %q is not there", ErrNoNamespace, namespace)); t != nil {
			return t
		}
	}
	return err
}

// partitionsOf is the number of partitions of a new namespace. On one Redis more of them only
// divide the batches and multiply the idle calls; on a Cluster they spread over its masters.
func partitionsOf(client redis.UniversalClient) int {
	if _, ok := client.(*redis.ClusterClient); ok {
		return 64
	}
	return 1
}

// control reads the control record, after writing an absent one if create is set. To an existing
// record only an incarnation is added.
func control(ctx context.Context, client redis.UniversalClient, cfg Config, create bool) (Control, error) {
	key := NamespaceKeys(cfg.Namespace).Control
	record, err := client.HGetAll(ctx, key).Result()
	if err == nil && len(record) == 0 && create {
		var got *redis.MapStringStringCmd
		err = redisconn.TxPipelined(ctx, client, func(p redis.Pipeliner) error {
			p.HSetNX(ctx, key, "format", Format)
			p.HSetNX(ctx, key, "partitions", cmp.Or(cfg.Partitions, partitionsOf(client)))
			p.HSetNX(ctx, key, "generation", cfg.Generation)
			p.HSetNX(ctx, key, "incarnation", cfg.NewID())
			got = p.HGetAll(ctx, key)
			return nil
		})
		record = got.Val()
	}
	if err != nil {
		return Control{}, explain(ctx, client, cfg.Namespace, "open namespace "+cfg.Namespace, err)
	}
	if len(record) == 0 {
		return Control{}, fmt.Errorf("%w: %q has never been used in the Redis at %s; start a node there first, or name another with --namespace",
			ErrNoNamespace, cfg.Namespace, redisconn.Addr(client))
	}
	if record["format"] != Format {
		return Control{}, fmt.Errorf("%w: namespace %q has layout %q and this version knows %q; use the version that wrote it, or another namespace",
			ErrUnknownFormat, cfg.Namespace, record["format"], Format)
	}
	n, err := strconv.Atoi(record["partitions"])
	if err != nil || n < 1 || n > 1024 {
		return Control{}, fmt.Errorf("%w: namespace %q: partitions is %q in %s", ErrUnknownFormat, cfg.Namespace, record["partitions"], key)
	}
	if record["incarnation"] == "" && create { // an earlier version made it
		if err := client.HSetNX(ctx, key, "incarnation", cfg.NewID()).Err(); err != nil {
			return Control{}, explain(ctx, client, cfg.Namespace, "open namespace "+cfg.Namespace, err)
		}
	}
	return Control{
		Partitions: n, Generation: record["generation"], Epoch: Number(record["epoch"]),
		Promoting: record["promoting"], Move: record["move"],
	}, nil
}

// MoveFrom and MoveTo are the roles that a namespace has in a move.
const (
	MoveFrom = "from"
	MoveTo   = "to"
)

// The states of a move, as a control record notes them.
//
//	from   sealing ──► sealed ──► moved
//	           └─────────┴──► (undone: no note)
//	to     filling ◄──► opening ──► open
//	           └──► burnt
const (
	MoveSealing = "sealing" // the partitions are being sealed
	MoveSealed  = "sealed"  // all are
	MoveMoved   = "moved"   // the other side is open: this one never will be again, unless by a move back

	MoveFilling = "filling" // the place is reserved, jobs are being copied
	MoveOpening = "opening" // the copy is complete; from here on the move cannot be undone
	MoveOpen    = "open"    // the namespace lives here
	MoveBurnt   = "burnt"   // the move was undone
)

// Move is a control record's note of a move to or from another Redis. The zero Move is none.
type Move struct {
	ID    string    // uuid v7: a later move has a greater one
	Role  string    // of this side: MoveFrom or MoveTo
	State string    // see above
	Peer  string    // the other side's address, without a password
	At    time.Time // when the state was reached, by this side's Redis
}

// Closes reports whether a move in this state has closed the namespace, or is about to.
func (m Move) Closes() bool {
	return m.Role == MoveFrom || m.Role == MoveTo && m.State != MoveOpen
}

// ParseMove reads Control.Move; "" is the zero Move. It returns ErrUnknownFormat for a text that
// this version cannot read.
func ParseMove(s string) (Move, error) {
	if s == "" {
		return Move{}, nil
	}
	var m Move
	if err := m.ReadMove(s); err != nil || m.ID == "" || m.Role != MoveFrom && m.Role != MoveTo {
		return Move{}, fmt.Errorf("%w: move %.80q in the control record", ErrUnknownFormat, s)
	}
	return m, nil
}

// String is the move as ParseMove reads it.
func (m Move) String() string {
	if m.ID == "" {
		return ""
	}
	return m.text()
}

// HasMoved reports whether the namespace of control record from is open at to after a move, also
// before from has noted that. Clients of from continue at to.
func HasMoved(from, to Control) bool {
	f, err := ParseMove(from.Move)
	t, bad := ParseMove(to.Move)
	return err == nil && bad == nil && f.ID != "" && f.ID == t.ID && f.Role == MoveFrom && t.Role == MoveTo && t.State == MoveOpen
}

// Promotion is an operator's promotion of a generation. It goes through these steps, each of which
// may be repeated:
//
//	Begin ──► Raise, the gate of each partition ──► Switch, each job ──► Promoted
//
// Begin writes the promotion and its epoch; repeated after an interruption it returns the same
// epoch. Another promotion gets a higher epoch. A partition that has a later epoch carries out
// nothing of an earlier promotion.
type Promotion struct {
	Generation string
	Pattern    string // of job names, as in path.Match; "" for all jobs
	Cancel     bool   // ends the runs in flight
	Epoch      int64  // filled in by Begin
	Resumed    bool   // Begin found that the same had begun
}

// PromotionOf reads Control.Promoting; false when no promotion is under way, or when this version
// cannot read it.
func PromotionOf(promoting string) (Promotion, bool) {
	var p Promotion
	if p.ReadPromotion(promoting) != nil {
		return Promotion{}, false
	}
	return p, true
}

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
