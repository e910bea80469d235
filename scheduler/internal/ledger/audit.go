package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	// actionsMax is how many actions the audit keeps.
	actionsMax = 2000
	// wordMax and failureMax bound the texts of one, in bytes; its author and reason are bounded as
	// everywhere.
	wordMax    = 256
	failureMax = 512
)

// Action is an operator's action, done or refused.
type Action struct {
	At     int64  `json:"-"` // when it was noted, ms
	Author string `json:"author"`
	Via    string `json:"via"`    // by what means: cli, api, console
	Name   string `json:"name"`   // what, in the words of the command: "jobs pause"
	Target string `json:"target"` // the job, run, node, lock or generation
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"` // its options, in words
	Error  string `json:"error,omitempty"`  // why it failed; "" when it was done
}

type auditArgs struct {
	clocked

	Action string `json:"action"` // JSON
	Most   int    `json:"most"`   // how many are kept
}

// Audit notes an action. The oldest of too many are dropped.
func (l *Ledger) Audit(ctx context.Context, a Action) error {
	a.Author, a.Reason, a.Via = brief(a.Author, authorMax), brief(a.Reason, reasonMax), brief(a.Via, authorMax)
	a.Name, a.Target, a.Detail, a.Error = brief(a.Name, authorMax), brief(a.Target, wordMax), brief(a.Detail, wordMax), brief(a.Error, failureMax)
	args := auditArgs{l.timed(ctx), encoded(a), actionsMax}
	_, err := auditScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", args).Result()
	return l.explain(ctx, "note in the audit", err)
}

// Actions reads the audit, the newest first, and counts the rows that this version cannot read.
func (l *Ledger) Actions(ctx context.Context) (all []Action, unknownFormat int, err error) {
	rows, err := l.client.LRange(ctx, auditKey(l.cfg.Namespace), 0, -1).Result()
	if err != nil {
		return nil, 0, l.explain(ctx, "read the audit", err)
	}
	for i := len(rows) - 1; i >= 0; i-- {
		a, err := parseAction(rows[i])
		if err != nil {
			unknownFormat++
			continue
		}
		all = append(all, a)
	}
	return all, unknownFormat, nil
}

func parseAction(row string) (a Action, err error) {
	text, known := strings.CutPrefix(row, "1|")
	at, text, _ := strings.Cut(text, "|")
	if !known {
		return a, fmt.Errorf("%w: an action in the audit", ErrUnknownFormat)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("%w: an action in the audit: %w", ErrUnknownFormat, err)
	}
	a.At, err = strconv.ParseInt(at, 10, 64)
	return a, err
}
