package scheduler

import "github.com/escapement/escapement/jobs"

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

	SuccessWithinMS int64 `json:"success_within_ms"` // the longest time without a success that is expected of the job
}

// RetryView says how a failed function is called again inside a run.
type RetryView struct {
	Max          int   `json:"max"`
	BackoffMS    int64 `json:"backoff_ms"`
	MaxBackoffMS int64 `json:"max_backoff_ms"`
}

func policyView(j jobs.Job) PolicyView {
	v := PolicyView{
		CatchUpMax: j.CatchUpMax, StartWithinMS: j.StartWithin.Milliseconds(), OnCrash: j.OnCrash.String(), RerunMax: j.RerunMax,
		TimeoutMS: j.Timeout.Milliseconds(), TTLMS: j.TTL.Milliseconds(), Labels: j.Labels,
		SuccessWithinMS: j.Expect.SuccessWithin.Milliseconds(),
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if r := j.Retry; r.Max > 0 {
		v.Retry = &RetryView{Max: r.Max, BackoffMS: r.Backoff.Milliseconds(), MaxBackoffMS: r.MaxBackoff.Milliseconds()}
	}
	return v
}
