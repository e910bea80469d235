package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// PayloadMax is the largest payload of a run by hand, in bytes.
const PayloadMax = 64 << 10

// uniqueMax bounds the unique keys that one partition remembers.
const uniqueMax = 100_000

// Trigger describes a run by hand.
type Trigger struct {
	// Run is the run's id, made by the caller: a repeated request is the same run, as long as the
	// job's history still has its row.
	Run string
	// Payload is handed to the function; PayloadMax bytes at most.
	Payload []byte
	// At is when to run, ms; 0 is now.
	At int64
	// Unique names the run in place of Run, within its job: a request with the same key returns the
	// first one's run until the history's KeepFor after its time.
	Unique string
}

// UniqueRun is the id of the run of a job that a unique key names.
func UniqueRun(job, key string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(job+"\n"+key)).String()
}

type triggerArgs struct {
	clocked

	Job        string   `json:"job"`
	Run        string   `json:"run"`
	Successors []string `json:"successors"`          // ids under which the run may go on
	At         int64    `json:"at,string,omitempty"` // ms; 0 for now
	Remember   int64    `json:"remember,omitempty"`  // for how long the id is remembered, ms; 0 for as long as the history has it
	Most       int      `json:"most"`                // pending runs in a partition
	Many       int      `json:"many"`                // remembered ids in a partition
}

// Trigger puts one run of a job into pending and returns its id; the cursor stays. It returns
// ErrUnknownJob, or ErrRefused for a payload over PayloadMax, for one over 1 KiB while 256 runs of
// the partition are due, and for too many pending runs.
func (l *Ledger) Trigger(ctx context.Context, job string, t Trigger) (string, error) {
	if len(t.Payload) > PayloadMax {
		return "", fmt.Errorf("%w: payload of %d bytes; at most %d, so store it elsewhere and pass its address", ErrRefused, len(t.Payload), PayloadMax)
	}
	args := triggerArgs{clocked: l.timed(ctx), Job: job, Run: t.Run, At: t.At, Most: pendingMax, Many: uniqueMax}
	if t.Unique != "" {
		args.Run, args.Remember = UniqueRun(job, t.Unique), l.cfg.KeepFor.Milliseconds()
	}
	args.Successors = laterAttemptIDs(args.Run)
	_, err := l.ask(ctx, "run "+job, job, triggerScript, []Status{"queued"}, map[Status]error{
		"large": fmt.Errorf("%w: run %s: a payload of %d bytes, and 256 runs or more beside this job are due and wait; until fewer do, at most 1024 bytes are taken: ask again later, or store it elsewhere and pass its address",
			ErrRefused, job, len(t.Payload)),
	}, args, t.Payload)
	if err != nil {
		return "", err
	}
	return args.Run, nil
}

// refusal is the error for a script's answer that refuses an operator's request.
func (l *Ledger) refusal(op, job, word string) error {
	if shut, ok := strings.CutPrefix(word, "closed|"); ok {
		return fmt.Errorf("%s: %w", op, ClosedBy(shut))
	}
	switch word {
	case "unknown":
		return fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, job, l.cfg.Namespace)
	case "full":
		return fmt.Errorf("%w: %s: %d runs wait already beside this job; is a node running that holds it?", ErrRefused, op, pendingMax)
	case "unique full":
		return fmt.Errorf("%w: %s: %d unique keys are remembered already beside this job; use fewer, or a shorter history", ErrRefused, op, uniqueMax)
	case "foreign":
		return fmt.Errorf("%s: %w", op, ErrUnknownFormat)
	default:
		return fmt.Errorf("%s: answer %q: not one this version knows", op, word)
	}
}
