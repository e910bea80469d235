package scheduler

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// stampFormat is RFC 3339 in UTC with milliseconds.
const stampFormat = "2006-01-02T15:04:05.000Z"

// Stamp is an instant that prints as RFC 3339, UTC, with milliseconds.
type Stamp time.Time

// String is the instant, "2006-01-02T15:04:05.000Z".
func (s Stamp) String() string { return time.Time(s).UTC().Format(stampFormat) }

// MarshalText makes JSON print what String does.
func (s Stamp) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote, and any other RFC 3339.
func (s *Stamp) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err == nil {
		*s = Stamp(t)
	}
	return err
}

func stampOf(ms int64) *Stamp {
	if ms == 0 {
		return nil
	}
	s := Stamp(time.UnixMilli(ms))
	return &s
}

// JobView is a job as tools and the API show it.
type JobView struct {
	Name       string `json:"name"`
	Schedule   string `json:"schedule"`
	TimeZone   string `json:"time_zone"`
	Next       *Stamp `json:"next"`  // null when the schedule has no more
	Last       *Stamp `json:"last"`  // the latest tick accounted for, null before the first
	Owner      string `json:"owner"` // the node that goes first, of a sharded or raced job one of them; "" when no living node can run it
	Paused     bool   `json:"paused"`
	Generation string `json:"generation"`
	Revision   string `json:"revision"`
	Shards     int    `json:"shards"`
	Overlap    string `json:"overlap"`
	CatchUp    string `json:"catch_up"`
	PolicyView
	After  string `json:"after"`  // the job it follows; it then has no schedule
	Orphan bool   `json:"orphan"` // no living node of its generation holds it: it stands still until one does
	Open   string `json:"open"`   // the run that holds it, granted or pending, "" for none
	// Superseded are living nodes of the job's generation that hold another definition of it than the stored one, and
	// Standby those of another generation that hold one of their own; by name, the first 20.
	Superseded []string `json:"superseded,omitempty"`
	Standby    []string `json:"standby,omitempty"`
	// Pause says more while the job is paused.
	Pause *PauseView `json:"pause,omitempty"`
	// Counts is how many ticks and runs ended so, by the words of RunView.Outcome, since the job was
	// first registered.
	Counts map[string]int64 `json:"counts"`
	// HistoryFrom is the tick with which the recorded history begins, and the earliest to which the
	// cursor can be set back; null for a job that follows another.
	HistoryFrom *Stamp `json:"history_from"`
	// TrimmedTo is HistoryFrom when rows before it have been dropped already, else null. Reading it
	// takes the whole history: only Job fills it in.
	TrimmedTo *Stamp `json:"trimmed_to"`
	// LeftAlone is how many rows of the history this version does not understand; as TrimmedTo.
	LeftAlone int `json:"left_alone,omitempty"`
}

// PolicyView is the rest of a job's policies; what does not apply is 0, "" or null.
type PolicyView struct {
	CatchUpMax    int               `json:"catch_up_max"`
	StartWithinMS int64             `json:"start_within_ms"`
	OnCrash       string            `json:"on_crash"`
	RerunMax      int               `json:"rerun_max"`
	TimeoutMS     int64             `json:"timeout_ms"`
	TTLMS         int64             `json:"ttl_ms"`
	Retry         *RetryView        `json:"retry"`
	Labels        map[string]string `json:"labels"`
}

// RetryView says how a failed function is called again inside a run.
type RetryView struct {
	Max          int   `json:"max"`
	BackoffMS    int64 `json:"backoff_ms"`
	MaxBackoffMS int64 `json:"max_backoff_ms"`
}

// PauseView says since when a job is paused, until when, by whom and why.
type PauseView struct {
	Since  *Stamp `json:"since"`
	Until  *Stamp `json:"until"` // null: until somebody resumes it
	Author string `json:"author"`
	Reason string `json:"reason"`
}

// RunView is a run, or a range of ticks that did not run, as tools and the API show it.
type RunView struct {
	Run    string `json:"run"`
	Job    string `json:"job"`
	Tick   *Stamp `json:"tick"`            // of a range: its first tick
	Until  *Stamp `json:"until,omitempty"` // of a range: its last tick
	Count  *int64 `json:"count,omitempty"` // of a range: how many ticks; see Mark for 0
	Shard  int    `json:"shard"`
	Shards int    `json:"shards"`
	// Whole says that this is a tick of a sharded job as a whole; Of is, of a shard, that tick's id, and Param its
	// parameter.
	Whole      bool   `json:"whole,omitempty"`
	Of         string `json:"of,omitempty"`
	Param      string `json:"param,omitempty"`
	Attempt    int    `json:"attempt"`
	Tries      int    `json:"tries"`
	Token      string `json:"token"`
	Node       string `json:"node"`
	Generation string `json:"generation"`
	Trigger    string `json:"trigger"`
	Outcome    string `json:"outcome"` // "running", also while nobody was granted it yet
	Reason     string `json:"reason"`  // begins with "pending", and says why, while nobody was granted it yet
	Due        *Stamp `json:"due"`
	Started    *Stamp `json:"started"` // null when nobody was granted it
	Ended      *Stamp `json:"ended"`
	LagMS      int64  `json:"lag_ms"`
	DurationMS int64  `json:"duration_ms"` // of a running run: up to now
	Error      string `json:"error"`
	// Note belongs to Reason: the schedule that was replaced, the outcome of the job followed, who
	// wants a running run ended.
	Note string `json:"note,omitempty"`
	// NotBefore is the earliest that a pending run may start.
	NotBefore *Stamp `json:"not_before,omitempty"`
	// NextAttempt is the run of the attempt that followed this one, after a crash or by a rerun. Output is
	// the last of what the run wrote, and Payload what a run by hand was given. Only Run and Wait read them.
	NextAttempt string          `json:"next_attempt,omitempty"`
	Output      string          `json:"output,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`

	lease *ledger.Lease // while it is in flight
}

// NodeView is a node as tools and the API show it.
type NodeView struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Generation    string `json:"generation"`
	State         string `json:"state"` // active, standby, draining, gone
	Jobs          int    `json:"jobs"`
	Owned         int    `json:"owned"`
	Running       int    `json:"running"`
	ClockOffsetMS int64  `json:"clock_offset_ms"` // Redis' clock less the node's
	Version       string `json:"version"`
	Started       *Stamp `json:"started"`
	Seen          *Stamp `json:"seen"`
	Revision      string `json:"revision"`
	// Trouble is why it claims nothing, or not everything, though nobody has drained it: what /readyz says.
	Trouble string `json:"trouble,omitempty"`
	// Superseded is how many of its jobs are stored in another definition of its generation, and Standby how many are
	// another generation's; it claims neither.
	Superseded int `json:"superseded"`
	Standby    int `json:"standby"`
	// Drain says who drained the node's name, and why. The node heeds it with its next beat; State says
	// draining from then on.
	Drain *DrainView `json:"drain,omitempty"`
}

// DrainView says since when a name is drained, by whom and why. Since is null, and the rest empty, where a
// newer version noted it.
type DrainView struct {
	Since  *Stamp `json:"since"`
	Author string `json:"author"`
	Reason string `json:"reason"`
}

func jobView(s ledger.Stored, h holding, now time.Time, p ledger.Pause) (JobView, error) {
	if s.Err != nil {
		return JobView{}, s.Err
	}
	d, err := jobs.ParseDefinition(s.Definition)
	if err != nil {
		return JobView{}, err
	}
	j := d.Job()
	v := JobView{
		Name: s.Job, Schedule: j.Schedule, TimeZone: j.TimeZone, Next: stampOf(s.Cursor), Last: stampOf(lastTick(s.Entry, j)), Owner: h.owner,
		PolicyView: policyView(j), Revision: s.Revision, Shards: max(1, j.Shards), Overlap: j.Overlap.String(), CatchUp: j.CatchUp.String(),
		After: j.After, Generation: d.Generation, Orphan: h.orphan, Superseded: h.superseded, Standby: h.standby, Open: s.Open, HistoryFrom: stampOf(s.Base),
		Paused: s.Pause.Holds(now.UnixMilli()), Counts: make(map[string]int64, len(s.Counts)),
	}
	for o, n := range s.Counts {
		v.Counts[o.String()] = n
	}
	if v.Paused {
		v.Pause = pauseView(s.Pause, p)
	}
	return v, nil
}

func policyView(j jobs.Job) PolicyView {
	v := PolicyView{
		CatchUpMax: j.CatchUpMax, StartWithinMS: j.StartWithin.Milliseconds(), OnCrash: j.OnCrash.String(), RerunMax: j.RerunMax,
		TimeoutMS: j.Timeout.Milliseconds(), TTLMS: j.TTL.Milliseconds(), Labels: j.Labels,
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if r := j.Retry; r.Max > 0 {
		v.Retry = &RetryView{Max: r.Max, BackoffMS: r.Backoff.Milliseconds(), MaxBackoffMS: r.MaxBackoff.Milliseconds()}
	}
	return v
}

// pauseView takes the end from the window, which decides, and the rest from what is noted beside it.
func pauseView(w ledger.Window, p ledger.Pause) *PauseView {
	v := &PauseView{Since: stampOf(w.From), Until: stampOf(w.To), Author: p.Author, Reason: p.Reason}
	if p.Since != 0 {
		v.Since = stampOf(p.Since) // the window may begin before it, with a tick that was due and not claimed
	}
	return v
}

// trimmed says whether the history has lost rows: it then holds fewer ticks and runs than were counted.
// The entry must have been read before the rows.
func trimmed(e ledger.Entry, rows []ledger.Row, foreign int) bool {
	var counted, held int64
	for _, n := range e.Counts {
		counted += n
	}
	for _, r := range rows {
		switch {
		case r.Ranged:
			held += r.Count
		case !r.Whole: // its shards are counted
			held++
		}
	}
	return held < counted && foreign == 0
}

func nodeView(m sharding.Member) NodeView {
	return NodeView{
		ID: m.ID, Name: m.Name, Generation: m.Generation, State: m.State, Jobs: m.Jobs, Owned: m.Owned, Running: m.Running,
		ClockOffsetMS: m.OffsetMS, Trouble: oneLine(m.Trouble), Version: m.Version, Revision: m.Revision, Started: stampOf(work.Millis(m.Started)), Seen: stampOf(work.Millis(m.Seen)),
	}
}

func token(t int64) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatInt(t, 10)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
