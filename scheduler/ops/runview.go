package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// RunView is a run, or a range of ticks that did not run, as tools and the API show it.
// See Encode for its JSON.
type RunView struct {
	Run    string    `json:"run"`
	Job    string    `json:"job"`
	Tick   time.Time `json:"tick"`            // of a range: its first tick
	Until  time.Time `json:"until,omitempty"` // of a range: its last tick
	Count  *int64    `json:"count,omitempty"` // of a range: how many ticks; see Mark for 0
	Shard  int       `json:"shard"`
	Shards int       `json:"shards"`
	// Whole reports that this is a tick of a sharded job as a whole; Of is, of a shard, its tick's
	// id, and Param its parameter.
	Whole      bool         `json:"whole,omitempty"`
	Of         string       `json:"of,omitempty"`
	Param      string       `json:"param,omitempty"`
	Attempt    int          `json:"attempt"`
	Tries      int          `json:"tries"`
	Token      int64        `json:"token,string"`
	Node       string       `json:"node"`
	Generation string       `json:"generation"`
	Trigger    string       `json:"trigger"`
	Outcome    jobs.Outcome `json:"outcome"` // "running", also of a pending run
	// Reason begins with "pending", and names the cause, while the run has not been granted yet. Of
	// a granted run Reason may be the cause for which it waits before it starts.
	Reason   string        `json:"reason"`
	Due      time.Time     `json:"due"`
	Started  time.Time     `json:"started"` // null of a pending run, and while the run waits for its tick
	Ended    time.Time     `json:"ended"`
	Lag      time.Duration `json:"lag_ms"`
	Duration time.Duration `json:"duration_ms"` // of a running run: up to now
	Error    string        `json:"error"`
	// Note belongs to Reason: the schedule that was replaced, the outcome of the job followed, who
	// wants a running run ended; of ticks skipped for overlap, that a dead node's lease held the job,
	// or what the run waited for that held it.
	Note string `json:"note,omitempty"`
	// NotBefore is the earliest that a pending run may start.
	NotBefore time.Time `json:"not_before,omitempty"`
	// Progress is how far a running run is; null without a report.
	Progress *ProgressView `json:"progress,omitempty"`
	// NextAttempt is the run of the following attempt, after a crash or by a rerun. Output is the
	// end of the run's output, up to a second old while the run goes on, and Payload the payload of
	// a manual run. Only GetRun and WaitRun read these.
	NextAttempt string          `json:"next_attempt,omitempty"`
	Output      string          `json:"output,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
}

// Pending reports that this run has not been granted yet. Its outcome is "running" all the same.
func (v RunView) Pending() bool {
	return v.Outcome == jobs.OutcomeRunning && strings.HasPrefix(v.Reason, OutcomePending)
}

// Mark reports that this row is no tick: the cursor was set back to Tick, or moved from there by a
// definition that was replaced before any tick was owed.
func (v RunView) Mark() bool { return v.Count != nil && *v.Count == 0 }

// reasonLapsed is the reason of a run whose node has not renewed its lease in time. It may still be
// going.
const reasonLapsed = "lease lapsed, not reaped yet"

// runViews shows runs, and the state of runs in flight. With an error the views lack this state.
func runViews(ctx context.Context, c *conn, l *ledger.Ledger, runs []inspect.Run) ([]RunView, error) {
	s, err := inspect.Status(ctx, l, c.Roster(), runs)
	views := make([]RunView, len(runs))
	for k, r := range runs {
		v := runView(r)
		switch {
		case r.Lease == nil || err != nil:
		case v.Pending():
			v.Reason += s.Waits[v.Run]
		default:
			v.Duration = ms(max(0, s.Now-begun(r.Lease.Trigger, r.Lease.Tick, r.Lease.Granted)))
			if s.Now < r.Lease.Tick && !v.Started.IsZero() && aheadOf(r.Lease.Trigger) {
				v.Started = time.Time{} // it waits for its tick
			}
			if r.Lease.Until < s.Now && !v.Whole {
				v.Reason = reasonLapsed
			}
		}
		views[k] = v
	}
	if err == nil {
		err = addProgress(ctx, l, runs, views)
	}
	return views, err
}

// aheadOf reports whether runs of a trigger may be granted before their ticks.
func aheadOf(trigger string) bool {
	return trigger == jobs.TriggerSchedule.String() || trigger == jobs.TriggerCatchUp.String()
}

// begun is the earliest start of a run that was granted at an instant, ms: a scheduled run does not
// start before its tick.
func begun(trigger string, tick, granted int64) int64 {
	if aheadOf(trigger) {
		return max(tick, granted)
	}
	return granted
}

func runView(r inspect.Run) RunView {
	if r.Lease != nil {
		return openView(*r.Lease)
	}
	return rowView(*r.Row)
}

func openView(l ledger.Run) RunView {
	v := RunView{
		Run: l.ID, Job: l.Job, Tick: timeOf(l.Tick), Shard: l.Shard, Shards: l.Shards, Whole: l.IsOpenTick, Of: l.TickID, Param: l.Param, Attempt: l.Attempt,
		Token: l.Token, Node: l.NodeName, Trigger: l.Trigger, Outcome: jobs.OutcomeRunning, Due: timeOf(l.Tick),
	}
	started := begun(l.Trigger, l.Tick, l.Granted)
	if l.IsOpenTick {
		v.Reason, v.Started = fmt.Sprintf("%d of %d shards to end", l.Left, l.Shards), timeOf(started)
		return v
	}
	if l.Pending() {
		v.Reason, v.NotBefore = OutcomePending, timeOf(l.Granted)
		return v
	}
	v.Started, v.Lag = timeOf(started), ms(started-l.Tick)
	return v
}

func rowView(r ledger.Row) RunView {
	if r.Ranged {
		return RunView{
			Job: r.Job, Tick: timeOf(r.Tick), Until: timeOf(r.Until), Count: &r.Count, Outcome: r.Outcome,
			Reason: r.Reason, Note: r.Note, Due: timeOf(r.Tick), Ended: timeOf(r.At),
		}
	}
	v := RunView{
		Run: r.Run, Job: r.Job, Tick: timeOf(r.Tick), Shard: r.Shard, Shards: r.Shards, Whole: r.IsTick, Of: r.TickID, Param: r.Param, Attempt: r.Attempt, Tries: r.Tries,
		Token: r.Token, Node: r.NodeName, Trigger: r.Trigger, Outcome: r.Outcome, Reason: r.Reason, Note: r.Note,
		Due: timeOf(r.Tick), Ended: timeOf(r.At), Error: r.Error,
	}
	if r.Token != 0 || r.IsTick { // else it was cancelled while it was pending
		started := begun(r.Trigger, r.Tick, r.Started)
		v.Started, v.Lag, v.Duration = timeOf(started), ms(started-r.Tick), ms(max(0, r.At-started))
	}
	if r.Late != "" {
		late := "reported after that: " + lateReport(r.Late)
		if v.Error != "" {
			late = v.Error + "; " + late
		}
		v.Error = late
	}
	return v
}

// lateReport spells a report that came after the outcome, "succeeded 1763726400123" in the record,
// with its time.
func lateReport(text string) string {
	outcome, at, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if ended := timeOf(ms); err == nil && !ended.IsZero() {
		return outcome + " at " + FormatTime(ended)
	}
	return text
}

// keep adds a run's stored output and payload, as valid text and JSON whatever the bytes are.
func (v *RunView) keep(output, payload []byte) {
	v.Output = strings.ToValidUTF8(string(output), "\uFFFD")
	if len(payload) == 0 {
		return
	}
	if v.Payload = bytes.ToValidUTF8(payload, []byte("\uFFFD")); !json.Valid(payload) { // which need not be UTF-8
		v.Payload, _ = json.Marshal(string(payload)) // a string always has a JSON form
	}
}

// ProgressView is the progress of a run in flight, up to a third of its lease time old; see
// jobs.Run.Progress.
type ProgressView struct {
	Done  int64     `json:"done"`
	Total int64     `json:"total"` // 0: not known
	Note  string    `json:"note"`
	At    time.Time `json:"at"` // when the run reported it
	// End is when the run will end if it goes on at the rate since its first report; null when not
	// known.
	End time.Time `json:"end"`
}

func progressView(p ledger.Progress) *ProgressView {
	v := &ProgressView{Done: p.Done, Total: p.Total, Note: p.Note, At: timeOf(p.At)}
	if did, took := p.Done-p.From, p.At-p.Since; did > 0 && took > 0 && p.Total > p.Done {
		v.End = timeOf(p.At + int64(float64(p.Total-p.Done)*float64(took)/float64(did)))
	}
	return v
}

// addProgress adds the progress of started runs, and the causes for which granted runs wait before
// they start.
func addProgress(ctx context.Context, l *ledger.Ledger, runs []inspect.Run, views []RunView) error {
	var going []ledger.Run
	for _, r := range runs {
		if r.Lease != nil && !r.Lease.Pending() && !r.Lease.IsOpenTick {
			going = append(going, *r.Lease)
		}
	}
	if len(going) == 0 {
		return nil
	}
	said, waits, err := query.Progress(ctx, l, going)
	for k := range views {
		if p, ok := said[views[k].Run]; ok && runs[k].Lease != nil {
			views[k].Progress = progressView(p)
		}
		if w, ok := waits[views[k].Run]; ok && runs[k].Lease != nil && views[k].Reason == "" {
			views[k].Reason = w.Note
		}
	}
	return err
}
