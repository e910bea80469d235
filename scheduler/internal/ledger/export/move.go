package export

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// MoveNotes are a control record's fields about moves.
type MoveNotes struct {
	ledger.Move
	// Copied is the digest of the copy, "" when no copy is complete.
	Copied string
	// Servers is the function Servers' text when the namespace was sealed.
	Servers string
	// Undone is the id of the last move from here that was undone.
	Undone string
}

// ReadMoveNotes reads the control record's fields about moves.
func ReadMoveNotes(ctx context.Context, l *ledger.Ledger) (MoveNotes, error) {
	got, err := l.Client.HMGet(ctx, ledger.NamespaceKeys(l.Config.Namespace).Control, "move", "copied", "undone", "servers").Result()
	if err != nil {
		return MoveNotes{}, redisconn.Classify("read the move of "+l.Config.Namespace, err)
	}
	m, err := ledger.ParseMove(ledger.Text(got[0]))
	return MoveNotes{Move: m, Copied: ledger.Text(got[1]), Undone: ledger.Text(got[2]), Servers: ledger.Text(got[3])}, err
}

// TimeOf is Ledger.Time for a Redis in which there may be no such namespace.
func TimeOf(ctx context.Context, client redis.UniversalClient, namespace string) (now time.Time, runID string, err error) {
	return (&ledger.Ledger{Client: client, Config: ledger.Config{Namespace: namespace}}).Time(ctx)
}

// drainsKey is the roster's, spelt in scheduler/internal/roster/keys.go: names that are drained
// move with the namespace.
func drainsKey(ns string) string { return "{" + ns + "}:drains" }

// rosterKey is the roster's, spelt in scheduler/internal/roster/keys.go.
func rosterKey(ns string) string { return "{" + ns + "}:roster" }

// Servers is a text that changes when a server with keys of the namespace is replaced or restarted:
// the text in the roster. It is "" when the server hides its identity.
func Servers(ctx context.Context, l *ledger.Ledger) (string, error) {
	ids, err := epoch.Identities(ctx, l, nil)
	if err != nil {
		return "", fmt.Errorf("ask all masters who they are: %w; run the command again", err)
	}
	return epoch.RosterText(l, ids), nil
}

// Placed reports whether every node in the roster has reported its runs to these Servers. A record
// of a dead node may report none.
func Placed(ctx context.Context, l *ledger.Ledger, server string) (bool, error) {
	records, err := l.Client.HVals(ctx, rosterKey(l.Config.Namespace)).Result()
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

// Running reads the runs that are going in all partitions, by job. It returns ErrUnknownFormat for
// a record that it cannot read.
func Running(ctx context.Context, l *ledger.Ledger) ([]ledger.Run, error) {
	got, err := ledger.Queue(ctx, l, l.Keys, func(p redis.Pipeliner, k ledger.Keys) *redis.MapStringStringCmd { return p.HGetAll(ctx, k.Runs) })
	if err != nil {
		return nil, redisconn.Classify("list runs", err)
	}
	var runs []ledger.Run
	var bad error
	for i, k := range l.Keys {
		runs = append(runs, query.OpenRuns(got[i].Val(), nil, func(err error) { bad = fmt.Errorf("%s: %w", k.Runs, err) })...)
	}
	slices.SortStableFunc(runs, func(a, b ledger.Run) int { return strings.Compare(a.Job, b.Job) })
	return runs, bad
}

// Sizes counts the jobs, the runs in flight and the runs that were never granted.
func Sizes(ctx context.Context, l *ledger.Ledger) (jobs, running, pending int64, err error) {
	got := make([]*redis.IntCmd, 0, 3*len(l.Keys))
	_, err = l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range l.Keys {
			got = append(got, p.HLen(ctx, k.Jobs), p.HLen(ctx, k.Runs), p.ZCard(ctx, k.Pending))
		}
		return nil
	})
	for i := 0; i < len(got); i += 3 {
		jobs, running, pending = jobs+got[i].Val(), running+got[i+1].Val(), pending+got[i+2].Val()
	}
	return jobs, running, pending, redisconn.Classify("count the jobs", err)
}
