package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var auditScript = ledger.Ship("operate/audit", auditArgs{})

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
	ledger.Clocked

	Action string `json:"action"` // JSON
	Most   int    `json:"most"`   // how many are kept
}

// Audit notes an action. The oldest of too many are dropped.
func Audit(ctx context.Context, l *ledger.Ledger, a Action) error {
	a.Author, a.Reason, a.Via = ledger.Brief(a.Author, ledger.MaxAuthor), ledger.Brief(a.Reason, ledger.MaxReason), ledger.Brief(a.Via, ledger.MaxAuthor)
	a.Name, a.Target, a.Detail, a.Error = ledger.Brief(a.Name, ledger.MaxAuthor), ledger.Brief(a.Target, wordMax), ledger.Brief(a.Detail, wordMax), ledger.Brief(a.Error, failureMax)
	args := auditArgs{l.Timed(ctx), ledger.Encoded(a), actionsMax}
	_, err := auditScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", args).Result()
	return l.Explain(ctx, "note in the audit", err)
}

// Actions reads the audit, the newest first, and counts the rows that this version cannot read.
func Actions(ctx context.Context, l *ledger.Ledger) (all []Action, unknownFormat int, err error) {
	rows, err := l.Client.LRange(ctx, ledger.NamespaceKeys(l.Config.Namespace).Audit, 0, -1).Result()
	if err != nil {
		return nil, 0, l.Explain(ctx, "read the audit", err)
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
		return a, fmt.Errorf("%w: an action in the audit", ledger.ErrUnknownFormat)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("%w: an action in the audit: %w", ledger.ErrUnknownFormat, err)
	}
	a.At, err = strconv.ParseInt(at, 10, 64)
	return a, err
}
