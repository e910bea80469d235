// Package notices keeps the notes of notifiers: which events of jobs were sent, and the messages that
// wait.
package notices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var notifiedScript = ledger.Ship("notices/notified", notifiedArgs{})

// ErrStale is returned to a notifier that another one has followed: it holds the lock no longer.
var ErrStale = errors.New("another notifier has taken over")

// notedToken is the field with the last writer's token. No job is called so.
const notedToken = ":token"

type notifiedArgs struct {
	Token string   `json:"token"`
	Set   []string `json:"set,omitempty"`  // field, value, field, value
	Drop  []string `json:"drop,omitempty"` // fields
}

// Read reads the notifiers' notes, by field: a job's name, or a word that begins with a colon.
func Read(ctx context.Context, l *ledger.Ledger) (map[string]string, error) {
	all, err := l.Client.HGetAll(ctx, ledger.NamespaceKeys(l.Config.Namespace).Notified).Result()
	delete(all, notedToken)
	return all, l.Explain(ctx, "read what was notified", err)
}

// Write writes some fields and drops others, in one step. It returns ErrStale, and writes
// nothing, when the holder of a greater token has written before.
func Write(ctx context.Context, l *ledger.Ledger, token locking.Token, set map[string]string, drop []string) error {
	args := notifiedArgs{Token: strconv.FormatInt(token, 10), Drop: drop}
	for _, field := range slices.Sorted(maps.Keys(set)) {
		args.Set = append(args.Set, field, set[field])
	}
	answer, err := notifiedScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", args).Text()
	if err != nil {
		return l.Explain(ctx, "note what is notified", err)
	}
	if answer != "done" {
		return fmt.Errorf("note what is notified: %w", ErrStale)
	}
	return nil
}
