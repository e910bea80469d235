package scheduler

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
)

// StoredView is a stored job as tools and the API show and take it, with all settings. What is left out is the default.
type StoredView struct {
	Name            string            `json:"name"`
	Handler         string            `json:"handler"`
	Payload         json.RawMessage   `json:"payload,omitempty"`
	ManagedBy       string            `json:"managed_by,omitempty"` // who keeps this job and others together
	Schedule        string            `json:"schedule"`             // "" for a job that follows others
	After           NameList          `json:"after,omitempty"`
	When            string            `json:"when,omitempty"`
	TimeZone        string            `json:"time_zone,omitempty"`
	Overlap         string            `json:"overlap,omitempty"`
	CatchUp         string            `json:"catch_up,omitempty"`
	CatchUpMax      int               `json:"catch_up_max,omitempty"`
	StartWithinMS   int64             `json:"start_within_ms,omitempty"`
	OnCrash         string            `json:"on_crash,omitempty"`
	RerunMax        int               `json:"rerun_max,omitempty"`
	TimeoutMS       int64             `json:"timeout_ms,omitempty"`
	StallAfterMS    int64             `json:"stall_after_ms,omitempty"`
	OnStall         string            `json:"on_stall,omitempty"`
	TTLMS           int64             `json:"ttl_ms,omitempty"`
	Retry           *RetryView        `json:"retry,omitempty"`
	Shards          int               `json:"shards,omitempty"`
	Params          []string          `json:"params,omitempty"`
	Placement       string            `json:"placement,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Limit           *LimitView        `json:"limit,omitempty"`
	Guard           string            `json:"guard,omitempty"`
	SuccessWithinMS int64             `json:"success_within_ms,omitempty"`
	Except          []string          `json:"except,omitempty"`
	Only            []string          `json:"only,omitempty"`
	StartAt         *Stamp            `json:"start_at,omitempty"`
	EndAt           *Stamp            `json:"end_at,omitempty"`
	JitterMS        int64             `json:"jitter_ms,omitempty"`
	MaxRuns         int               `json:"max_runs,omitempty"`
	Version         *Stamp            `json:"version,omitempty"` // of the job that is stored; it is not a setting
}

// View is the stored job as tools and the API show it.
func (s StoredJob) View() StoredView {
	j := s.Job
	v := StoredView{
		Name: j.Name, Handler: j.Handler, Payload: j.Payload, ManagedBy: j.ManagedBy, Schedule: j.Schedule, TimeZone: j.TimeZone, Overlap: j.Overlap.String(), CatchUp: j.CatchUp.String(),
		CatchUpMax: j.CatchUpMax, StartWithinMS: j.StartWithin.Milliseconds(), OnCrash: j.OnCrash.String(), RerunMax: j.RerunMax,
		TimeoutMS: j.Timeout.Milliseconds(), TTLMS: j.TTL.Milliseconds(), Shards: j.Shards, Params: j.Params, Placement: j.Placement.String(),
		Labels: j.Labels, Guard: j.Guard, SuccessWithinMS: j.Expect.SuccessWithin.Milliseconds(),
	}
	p := policyView(j)
	v.StallAfterMS, v.OnStall = p.StallAfterMS, p.OnStall
	if v.After = j.After; len(j.After) > 0 {
		v.When, v.CatchUp = j.When.String(), "" // it has no catch-up
	}
	v.Retry, v.Limit, v.Except, v.Only, v.StartAt, v.EndAt = p.Retry, p.Limit, j.Except, j.Only, p.StartAt, p.EndAt
	v.JitterMS, v.MaxRuns = p.JitterMS, p.MaxRuns
	if !s.Version.IsZero() {
		v.Version = stampOf(s.Version.UnixMilli())
	}
	return v
}

// Stored is the stored job that v shows. The error is that of Job.
func (v StoredView) Stored() (StoredJob, error) {
	j, err := v.Job()
	s := StoredJob{Job: j}
	if v.Version != nil {
		s.Version = time.Time(*v.Version)
	}
	return s, err
}

// Job is the job with these settings, without a function. The error is a *jobs.FieldError for a word that is none of the
// setting's, and for a number of milliseconds that is no duration; Job checks nothing else.
func (v StoredView) Job() (jobs.Job, error) {
	var bad error // the first number of milliseconds that is no duration
	ms := func(field string, n int64) time.Duration {
		d := redisconn.Duration(n, time.Millisecond)
		//guard:stored-duration P8 a number that is no duration is refused, and not stored as another one
		if d.Milliseconds() != n && bad == nil {
			bad = &jobs.FieldError{Field: field, Msg: fmt.Sprintf("%d is outside of what a duration can be, %d milliseconds at most", n, d.Abs().Milliseconds())}
		}
		return d
	}
	j := jobs.Job{
		Name: v.Name, Handler: v.Handler, Payload: v.Payload, ManagedBy: v.ManagedBy, Schedule: v.Schedule, TimeZone: v.TimeZone, CatchUpMax: v.CatchUpMax,
		StartWithin: ms("start_within_ms", v.StartWithinMS), RerunMax: v.RerunMax, Timeout: ms("timeout_ms", v.TimeoutMS), TTL: ms("ttl_ms", v.TTLMS), Shards: v.Shards, Params: v.Params,
		Except: v.Except, Only: v.Only, Jitter: ms("jitter_ms", v.JitterMS), MaxRuns: v.MaxRuns, After: v.After, Labels: v.Labels, Guard: v.Guard, Expect: jobs.Expect{SuccessWithin: ms("success_within_ms", v.SuccessWithinMS)},
	}
	j.StallAfter = ms("stall_after_ms", v.StallAfterMS)
	if v.StartAt != nil {
		j.StartAt = time.Time(*v.StartAt)
	}
	if v.EndAt != nil {
		j.EndAt = time.Time(*v.EndAt)
	}
	if r := v.Retry; r != nil {
		j.Retry = jobs.Retry{Max: r.Max, Backoff: ms("retry.backoff_ms", r.BackoffMS), MaxBackoff: ms("retry.max_backoff_ms", r.MaxBackoffMS), Timeout: ms("retry.try_timeout_ms", r.TryTimeoutMS)}
	}
	if l := v.Limit; l != nil {
		j.Limit = jobs.Limit{Group: l.Group, Max: l.Max}
	}
	retryOn := ""
	if v.Retry != nil {
		retryOn = v.Retry.On
	}
	for _, word := range []struct {
		field, text string
		into        encoding.TextUnmarshaler
	}{{"overlap", v.Overlap, &j.Overlap}, {"catch_up", v.CatchUp, &j.CatchUp}, {"on_crash", v.OnCrash, &j.OnCrash}, {"on_stall", v.OnStall, &j.OnStall},
		{"placement", v.Placement, &j.Placement}, {"when", v.When, &j.When}, {"retry.on", retryOn, &j.Retry.On}} {
		if word.text == "" {
			continue
		}
		if err := word.into.UnmarshalText([]byte(word.text)); err != nil {
			return j, &jobs.FieldError{Field: word.field, Msg: strings.TrimPrefix(err.Error(), word.field+" ")}
		}
	}
	return j, bad
}
