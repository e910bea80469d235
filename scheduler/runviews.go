package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

func openView(l ledger.Lease) RunView {
	v := RunView{
		Run: l.Run, Job: l.Job, Tick: stampOf(l.Tick), Shard: l.Shard, Shards: l.Shards, Whole: l.Whole, Of: l.Of, Param: l.Param, Attempt: l.Attempt,
		Token: token(l.Token), Node: l.NodeName, Trigger: l.Trigger, Outcome: jobs.OutcomeRunning.String(), Due: stampOf(l.Tick),
		lease: &l,
	}
	if l.Whole {
		v.Reason, v.Started = fmt.Sprintf("%d of %d shards to end", l.Left, l.Shards), stampOf(l.Granted)
		return v
	}
	if l.Pending() {
		v.Reason, v.NotBefore = reasonPending, stampOf(l.Granted)
		return v
	}
	v.Started, v.LagMS = stampOf(l.Granted), l.Granted-l.Tick
	return v
}

func rowView(r ledger.Row) RunView {
	if r.Ranged {
		return RunView{
			Job: r.Job, Tick: stampOf(r.Tick), Until: stampOf(r.Until), Count: &r.Count, Outcome: r.Outcome.String(),
			Reason: r.Reason, Note: r.Note, Due: stampOf(r.Tick), Ended: stampOf(r.At),
		}
	}
	v := RunView{
		Run: r.Run, Job: r.Job, Tick: stampOf(r.Tick), Shard: r.Shard, Shards: r.Shards, Whole: r.Whole, Of: r.Of, Param: r.Param, Attempt: r.Attempt, Tries: r.Tries,
		Token: token(r.Token), Node: r.NodeName, Trigger: r.Trigger, Outcome: r.Outcome.String(), Reason: r.Reason,
		Due: stampOf(r.Tick), Ended: stampOf(r.At), Error: r.Error,
	}
	if r.Token != 0 || r.Whole { // else it was cancelled while it was pending
		v.Started, v.LagMS, v.DurationMS = stampOf(r.Started), r.Started-r.Tick, r.At-r.Started
	}
	if r.Late != "" {
		v.Error = join(v.Error, "reported after that: "+r.Late)
	}
	return v
}

// Mark says that this stands for no tick: the cursor was set back to Tick, or moved from there by a definition that
// was replaced before any tick was owed.
func (v RunView) Mark() bool { return v.Count != nil && *v.Count == 0 }

// keep adds what is kept beside a run, as text and JSON whatever it is.
func (v *RunView) keep(output, payload []byte) {
	v.Output = strings.ToValidUTF8(string(output), "\uFFFD")
	if len(payload) == 0 {
		return
	}
	if v.Payload = bytes.ToValidUTF8(payload, []byte("\uFFFD")); !json.Valid(payload) { // which need not be UTF-8
		v.Payload, _ = json.Marshal(string(payload)) // a string always has a JSON form
	}
}
