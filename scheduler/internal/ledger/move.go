package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

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
	if err := m.readMove(s); err != nil || m.ID == "" || m.Role != MoveFrom && m.Role != MoveTo {
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

// MoveNotes are a control record's fields about moves.
type MoveNotes struct {
	Move
	// Copied is the digest of the copy, "" when no copy is complete.
	Copied string
	// Servers is Ledger.Servers' text when the namespace was sealed.
	Servers string
	// Undone is the id of the last move from here that was undone.
	Undone string
}

// MoveNotes reads the control record's fields about moves.
func (l *Ledger) MoveNotes(ctx context.Context) (MoveNotes, error) {
	got, err := l.client.HMGet(ctx, controlKey(l.cfg.Namespace), "move", "copied", "undone", "servers").Result()
	if err != nil {
		return MoveNotes{}, redisconn.Classify("read the move of "+l.cfg.Namespace, err)
	}
	m, err := ParseMove(text(got[0]))
	return MoveNotes{Move: m, Copied: text(got[1]), Undone: text(got[2]), Servers: text(got[3])}, err
}

// TimeOf is Ledger.Time for a Redis in which there may be no such namespace.
func TimeOf(ctx context.Context, client redis.UniversalClient, namespace string) (now time.Time, runID string, err error) {
	return (&Ledger{client: client, cfg: Config{Namespace: namespace}}).Time(ctx)
}

// drainsKey is the roster's, spelt in scheduler/internal/roster/keys.go: names that are drained
// move with the namespace.
func drainsKey(ns string) string { return "{" + ns + "}:drains" }

// rosterKey is the roster's, spelt in scheduler/internal/roster/keys.go.
func rosterKey(ns string) string { return "{" + ns + "}:roster" }

// Servers is a text that changes when a server with keys of the namespace is replaced or restarted:
// the text in the roster. It is "" when the server hides its identity.
func (l *Ledger) Servers(ctx context.Context) (string, error) {
	ids, err := l.Identities(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("ask all masters who they are: %w; run the command again", err)
	}
	return l.rosterText(ids), nil
}

// Placed reports whether every node in the roster has reported its runs to these Servers. A record
// of a dead node may report none.
func (l *Ledger) Placed(ctx context.Context, server string) (bool, error) {
	records, err := l.client.HVals(ctx, rosterKey(l.cfg.Namespace)).Result()
	if err != nil {
		return false, redisconn.Classify("read the roster", err)
	}
	for _, record := range records {
		var node struct{ Placed string }
		_ = json.Unmarshal([]byte(record), &node) // an unreadable record has no Placed
		if node.Placed != server {
			return false, nil
		}
	}
	return true, nil
}
