package scheduler

import (
	"encoding/json"

	"github.com/escapement/escapement/jobs"
)

// PolicyView is the rest of a job's policies; what does not apply is 0, "" or null.
type PolicyView struct {
	CatchUpMax    int               `json:"catch_up_max"`
	StartWithinMS int64             `json:"start_within_ms"`
	OnCrash       string            `json:"on_crash"`
	RerunMax      int               `json:"rerun_max"`
	TimeoutMS     int64             `json:"timeout_ms"`
	StallAfterMS  int64             `json:"stall_after_ms"`
	OnStall       string            `json:"on_stall"`
	TTLMS         int64             `json:"ttl_ms"`
	Retry         *RetryView        `json:"retry"`
	Labels        map[string]string `json:"labels"`
	Limit         *LimitView        `json:"limit"`
	Guard         string            `json:"guard"`
	Handler       string            `json:"handler"`              // the handler that its runs call; "" when the program gives a function
	Payload       json.RawMessage   `json:"payload,omitempty"`    // that each run of a handler gets
	ManagedBy     string            `json:"managed_by,omitempty"` // who keeps this stored job and others together

	Except  []string `json:"except"` // days without ticks: dates such as 2026-12-24, and ranges such as 2026-12-24..2027-01-02
	Only    []string `json:"only"`   // the only days with ticks; [] for all
	StartAt *Stamp   `json:"start_at"`
	EndAt   *Stamp   `json:"end_at"`

	Upstreams []string `json:"upstreams"` // the jobs that it follows; [] for a job with a schedule
	When      string   `json:"when"`      // after which ends of theirs it runs: succeeded, failed or any; "" for a job with a schedule
	MaxRuns   int      `json:"max_runs"`  // how many ticks are run; 0: no bound
	JitterMS  int64    `json:"jitter_ms"` // below which is the offset of all ticks, which the job's name decides

	SuccessWithinMS int64 `json:"success_within_ms"` // the longest time without a success that is expected of the job
}

// LimitView is the group of jobs of which at most Max runs go on at once.
type LimitView struct {
	Group string `json:"group"`
	Max   int    `json:"max"`
}

// RetryView says how a failed function is called again inside a run.
type RetryView struct {
	Max          int    `json:"max"`
	BackoffMS    int64  `json:"backoff_ms"`
	MaxBackoffMS int64  `json:"max_backoff_ms"`
	TryTimeoutMS int64  `json:"try_timeout_ms,omitempty"` // of each try; 0: none
	On           string `json:"on,omitempty"`             // other_node: each try is an attempt of its own; "": inside the run
}

func policyView(j jobs.Job) PolicyView {
	v := PolicyView{
		CatchUpMax: j.CatchUpMax, StartWithinMS: j.StartWithin.Milliseconds(), OnCrash: j.OnCrash.String(), RerunMax: j.RerunMax,
		TimeoutMS: j.Timeout.Milliseconds(), TTLMS: j.TTL.Milliseconds(), Labels: j.Labels,
		Guard: j.Guard, Handler: j.Handler, Payload: j.Payload, ManagedBy: j.ManagedBy, SuccessWithinMS: j.Expect.SuccessWithin.Milliseconds(),
	}
	if v.Upstreams = append([]string{}, j.After...); len(j.After) > 0 {
		v.When = j.When.String()
	}
	v.JitterMS, v.MaxRuns = j.Jitter.Milliseconds(), j.MaxRuns
	v.Except, v.Only = append([]string{}, j.Except...), append([]string{}, j.Only...)
	if !j.StartAt.IsZero() {
		v.StartAt = stampOf(j.StartAt.UnixMilli())
	}
	if !j.EndAt.IsZero() {
		v.EndAt = stampOf(j.EndAt.UnixMilli())
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	v.StallAfterMS, v.OnStall = j.StallAfter.Milliseconds(), j.OnStall.String()
	if l := j.Limit; l.Group != "" {
		v.Limit = &LimitView{l.Group, l.Max}
	}
	if r := j.Retry; r.Max > 0 {
		v.Retry = &RetryView{Max: r.Max, BackoffMS: r.Backoff.Milliseconds(), MaxBackoffMS: r.MaxBackoff.Milliseconds(), TryTimeoutMS: r.Timeout.Milliseconds()}
		if r.On != jobs.RetrySameNode {
			v.Retry.On = r.On.String()
		}
	}
	return v
}
