package operate

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var triggerScript = ledger.Ship("operate/trigger", triggerArgs{})

// PayloadMax is the largest payload of a run by hand, in bytes.
const PayloadMax = 64 << 10

// TriggerRequest describes a run by hand.
type TriggerRequest struct {
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
	ledger.Clocked

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
func Trigger(ctx context.Context, l *ledger.Ledger, job string, t TriggerRequest) (string, error) {
	if len(t.Payload) > PayloadMax {
		return "", fmt.Errorf("%w: payload of %d bytes; at most %d, so store it elsewhere and pass its address", ledger.ErrRefused, len(t.Payload), PayloadMax)
	}
	args := triggerArgs{Clocked: l.Timed(ctx), Job: job, Run: t.Run, At: t.At, Most: ledger.PendingMax, Many: ledger.UniqueMax}
	if t.Unique != "" {
		args.Run, args.Remember = UniqueRun(job, t.Unique), l.Config.KeepFor.Milliseconds()
	}
	args.Successors = ledger.LaterAttemptIDs(args.Run)
	_, err := l.Ask(ctx, "run "+job, job, triggerScript, []ledger.Status{"queued"}, map[ledger.Status]error{
		"large": fmt.Errorf("%w: run %s: a payload of %d bytes, and 256 runs or more beside this job are due and wait; until fewer do, at most 1024 bytes are taken: ask again later, or store it elsewhere and pass its address",
			ledger.ErrRefused, job, len(t.Payload)),
	}, args, t.Payload)
	if err != nil {
		return "", err
	}
	return args.Run, nil
}
