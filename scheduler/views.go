package scheduler

import (
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
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
	Owner      string `json:"owner"` // the node that goes first, "" when no living node holds the job
	Paused     bool   `json:"paused"`
	Generation string `json:"generation"`
	Revision   string `json:"revision"`
	Shards     int    `json:"shards"`
	Overlap    string `json:"overlap"`
	CatchUp    string `json:"catch_up"`
}

// RunView is a run, or a range of ticks that did not run, as tools and the API show it.
type RunView struct {
	Run        string `json:"run"`
	Job        string `json:"job"`
	Tick       *Stamp `json:"tick"`            // of a range: its first tick
	Until      *Stamp `json:"until,omitempty"` // of a range: its last tick
	Count      int64  `json:"count,omitempty"` // of a range: how many ticks
	Shard      int    `json:"shard"`
	Shards     int    `json:"shards"`
	Attempt    int    `json:"attempt"`
	Tries      int    `json:"tries"`
	Token      string `json:"token"`
	Node       string `json:"node"`
	Generation string `json:"generation"`
	Trigger    string `json:"trigger"`
	Outcome    string `json:"outcome"` // "running", also while nobody was granted it yet
	Reason     string `json:"reason"`
	Due        *Stamp `json:"due"`
	Started    *Stamp `json:"started"`
	Ended      *Stamp `json:"ended"`
	LagMS      int64  `json:"lag_ms"`
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error"`
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
}

func jobView(s ledger.Stored, owner string) (JobView, error) {
	if s.Err != nil {
		return JobView{}, s.Err
	}
	d, err := jobs.ParseDefinition(s.Definition)
	if err != nil {
		return JobView{}, err
	}
	j := d.Job()
	return JobView{
		Name: s.Job, Schedule: j.Schedule, TimeZone: j.TimeZone, Next: stampOf(s.Cursor), Last: stampOf(s.Last), Owner: owner,
		Revision: s.Revision, Shards: max(1, j.Shards), Overlap: j.Overlap.String(), CatchUp: j.CatchUp.String(),
	}, nil
}

func openView(l ledger.Lease) RunView {
	v := RunView{
		Run: l.Run, Job: l.Job, Tick: stampOf(l.Tick), Shard: l.Shard, Shards: l.Shards, Attempt: l.Attempt,
		Token: token(l.Token), Node: l.NodeName, Trigger: l.Trigger, Outcome: jobs.OutcomeRunning.String(), Due: stampOf(l.Tick),
	}
	if l.Pending() {
		v.Reason = "pending"
		return v
	}
	v.Started, v.LagMS = stampOf(l.Granted), l.Granted-l.Tick
	return v
}

func rowView(r ledger.Row) RunView {
	if r.Ranged {
		return RunView{
			Job: r.Job, Tick: stampOf(r.Tick), Until: stampOf(r.Until), Count: r.Count, Outcome: r.Outcome.String(),
			Reason: r.Reason, Due: stampOf(r.Tick), Ended: stampOf(r.At),
		}
	}
	v := RunView{
		Run: r.Run, Job: r.Job, Tick: stampOf(r.Tick), Shard: r.Shard, Shards: r.Shards, Attempt: r.Attempt, Tries: r.Tries,
		Token: token(r.Token), Node: r.NodeName, Trigger: r.Trigger, Outcome: r.Outcome.String(), Reason: r.Reason,
		Due: stampOf(r.Tick), Started: stampOf(r.Started), Ended: stampOf(r.At), LagMS: r.Started - r.Tick,
		DurationMS: r.At - r.Started, Error: r.Error,
	}
	if r.Late != "" {
		v.Error = join(v.Error, "reported after that: "+r.Late)
	}
	return v
}

func nodeView(m sharding.Member) NodeView {
	return NodeView{
		ID: m.ID, Name: m.Name, Generation: m.Generation, State: m.State, Jobs: m.Jobs, Owned: m.Owned, Running: m.Running,
		ClockOffsetMS: m.OffsetMS, Version: m.Version, Started: stampOf(millis(m.Started)), Seen: stampOf(millis(m.Seen)),
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
