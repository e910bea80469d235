package ops

import (
	"context"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Named names a job or the name of nodes.
type Named struct {
	Name string `path:"name"`
}

// Why is the body of an action that takes no more than a reason.
type Why struct {
	Named
	Reason string `json:"reason,omitempty"`
}

var rowListJobs = read("jobs", "the jobs by name", listJobs)

// ListJobs lists jobs by name; it reads all names, and the records of the jobs on the page. Jobs in
// an unknown format are left out and named in the error, which then wraps ErrUnknownFormat and
// comes with the other jobs; and so does an UnreachableError. With more than 1,000 jobs and a
// limit, the owner is found by hashing alone; see JobView.Owner. ListJobs returns
// ErrUnknownNamespace when no node has ever run there, and ErrRefused for a negative limit.
func (c *Client) ListJobs(ctx context.Context, f JobFilter) (Page[JobView], error) {
	return call(ctx, c, rowListJobs, f)
}

var rowJobNames = read("job-names", "the names of all jobs, in order", plain(jobNames))

// JobNames are the names of all jobs, in order. With an UnreachableError, the readable names are
// returned too.
func (c *Client) JobNames(ctx context.Context) ([]string, error) {
	return call(ctx, c, rowJobNames, None{})
}

var rowGraph = read("graph", "the jobs that follow others, and those that others follow", plain(readGraph)).slow()

// Graph reads which job follows which, by name: all upstreams and all followers. It reads all
// definitions. Jobs in an unknown format are left out, and named in the error beside the other jobs
// if they may belong to the graph.
func (c *Client) Graph(ctx context.Context) ([]GraphJob, error) {
	return call(ctx, c, rowGraph, None{})
}

var rowGetJob = read("jobs/{name}", "one job", byName(getJob))

// GetJob reads one job. It returns ErrUnknownJob when there is none of that name, and an error that
// wraps ErrUnknownFormat for a job in an unknown format. With an UnreachableError the job is
// returned too, and its owner may be another one: the owner depends on all jobs.
func (c *Client) GetJob(ctx context.Context, name string) (JobView, error) {
	return call(ctx, c, rowGetJob, Named{name})
}

type ticksIn struct {
	Named
	From  time.Time `query:"from"`                                  // behind this instant; default: now
	Limit int       `query:"limit" default:"20" min:"1" max:"1000"` // how many
}

var rowTicks = &Operation[ticksIn, []TickView]{
	Info: Info{Method: "GET", Path: "jobs/{name}/ticks", Role: Viewer, Summary: "the next instants of a job's schedule"},
	do: func(ctx context.Context, c *conn, in ticksIn) ([]TickView, error) {
		return listTicks(ctx, c, in.Name, in.From, in.Limit)
	},
}

// ListTicks lists the next n instants of a job's schedule after an instant, the zero time for now;
// none for a job that follows another. Of a job with MaxRuns there are no more than it may still
// run. It returns ErrUnknownJob, and ErrRefused for an n that is not from 1 to 1,000.
func (c *Client) ListTicks(ctx context.Context, name string, after time.Time, n int) ([]TickView, error) {
	return call(ctx, c, rowTicks, ticksIn{Named{name}, after, n})
}

type previewIn struct {
	Schedule string        `query:"schedule"`                            // as of a job
	TimeZone string        `query:"time_zone"`                           // as of a job; default UTC
	Name     string        `query:"name"`                                // the job's name, which decides H and the offset of jitter
	Except   []string      `query:"except"`                              // a date or a range of dates without ticks; once for each
	Only     []string      `query:"only"`                                // a date or a range of dates with ticks; once for each
	StartAt  time.Time     `query:"start_at"`                            // as of a job
	EndAt    time.Time     `query:"end_at"`                              // as of a job
	Jitter   time.Duration `query:"jitter"`                              // as of a job, such as 10m
	Limit    int           `query:"limit" default:"10" min:"1" max:"20"` // how many ticks
}

var rowPreview = &Operation[previewIn, Preview]{
	Info: Info{Method: "GET", Path: "preview", Role: Viewer, Summary: "the next ticks of a schedule, whether there is such a job or not"},
	do: func(ctx context.Context, c *conn, in previewIn) (Preview, error) {
		j := jobs.Job{Name: in.Name, Schedule: in.Schedule, TimeZone: in.TimeZone, Except: in.Except, Only: in.Only,
			StartAt: in.StartAt, EndAt: in.EndAt, Jitter: in.Jitter}
		return previewSchedule(ctx, c, j, in.Limit)
	},
}

// Preview lists the next n ticks of a job with a schedule, by Redis' time, whether such a job
// exists or not, and the effect of the clock's changes. It reads the settings that decide the
// ticks, and the name, in place of which an example is used when it is empty. Faults of these
// settings are a part of the answer. It returns ErrRefused for an n that is not from 1 to 20.
func (c *Client) Preview(ctx context.Context, j jobs.Job, n int) (Preview, error) {
	return call(ctx, c, rowPreview, previewIn{j.Schedule, j.TimeZone, j.Name, j.Except, j.Only, j.StartAt, j.EndAt, j.Jitter, n})
}

type triggerIn struct {
	Named
	TriggerOptions
}

// Asked names the requested run.
type Asked struct {
	Run string `json:"run"`
	job string
}

var rowTrigger = &Operation[triggerIn, Asked]{
	Info: Info{Method: "POST", Path: "jobs/{name}/runs", Role: Operator, Audit: "jobs run", Summary: "run a job outside its schedule"},
	do: func(ctx context.Context, c *conn, in triggerIn) (Asked, error) {
		id, err := triggerJob(ctx, c, in.Name, in.TriggerOptions)
		return Asked{Run: id}, err
	},
	note: func(in triggerIn, out Asked) Action { return Action{Target: in.Name, Detail: in.detail(out.Run)} },
}

// Trigger requests one run of a job outside its schedule, and returns the run's id. The run also
// starts while the job is paused, and waits while another run holds the job. It returns
// ErrUnknownJob, and ErrRefused for a payload that is not JSON or too large, an instant out of
// range, too many pending runs, or a stored job that no node has taken within two seconds. If the
// answer is lost, only a request with Unique can be repeated without making a second run.
func (c *Client) Trigger(ctx context.Context, name string, o TriggerOptions) (id string, err error) {
	asked, err := call(ctx, c, rowTrigger, triggerIn{Named{name}, o})
	return asked.Run, err
}

type pauseIn struct {
	Named
	PauseOptions
}

var rowPause = &Operation[pauseIn, None]{
	Info: Info{Method: "POST", Path: "jobs/{name}/pause", Role: Operator, Audit: "jobs pause", Summary: "stop a job's schedule"},
	do: func(ctx context.Context, c *conn, in pauseIn) (None, error) {
		return done(pauseJob(ctx, c, in.Name, in.PauseOptions))
	},
	note: func(in pauseIn, _ None) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: untilWords(in.Until)}
	},
}

// Pause pauses a job. Ticks that are not claimed yet, up to the end of the pause, are recorded as
// paused and never run. A run in flight goes on, and runs by hand still start. A repeated call
// replaces the end, the author and the reason. It returns ErrUnknownJob, and ErrRefused without a
// reason, for a text that is not UTF-8, or for an end in the past of Redis' clock.
func (c *Client) Pause(ctx context.Context, name string, o PauseOptions) error {
	_, err := call(ctx, c, rowPause, pauseIn{Named{name}, o})
	return err
}

var rowResume = &Operation[Why, None]{
	Info: Info{Method: "POST", Path: "jobs/{name}/resume", Role: Operator, Audit: "jobs resume", Summary: "end a job's pause"},
	do:   func(ctx context.Context, c *conn, in Why) (None, error) { return done(resumeJob(ctx, c, in.Name)) },
	note: func(in Why, _ None) Action { return Action{Target: in.Name, Reason: in.Reason} },
}

// Resume ends a job's pause: ticks from now on run again. It changes nothing if the job is not
// paused. It returns ErrUnknownJob.
func (c *Client) Resume(ctx context.Context, name string) error {
	_, err := call(ctx, c, rowResume, Why{Named: Named{name}})
	return err
}

type rewindIn struct {
	Named
	To     time.Time `json:"to" wire:"set"` // the instant to go back to
	Reason string    `json:"reason,omitempty"`
}

// Rewound names the tick with which a job begins again.
type Rewound struct {
	Tick time.Time `json:"tick" wire:"set"`
}

var rowRewind = &Operation[rewindIn, Rewound]{
	Info: Info{Method: "POST", Path: "jobs/{name}/rewind", Role: Operator, Audit: "jobs rewind", Summary: "run a job's past ticks again"},
	do: func(ctx context.Context, c *conn, in rewindIn) (Rewound, error) {
		if in.To.IsZero() {
			return Rewound{}, &InputError{"to is missing: the instant to go back to"}
		}
		tick, err := rewindJob(ctx, c, in.Name, in.To)
		return Rewound{tick}, err
	},
	note: func(in rewindIn, _ Rewound) Action {
		return Action{Target: in.Name, Reason: in.Reason, Detail: "to " + FormatTime(in.To)}
	},
}

// Rewind sets a job's cursor back to the first tick of its schedule at or after an instant, and
// returns that tick. Ticks from there on are claimed again under the job's catch-up policy, each as
// a later attempt than any recorded one. It returns ErrUnknownJob, and ErrRefused while a run of
// the job is in flight, for a job that follows another, for an instant before the recorded history
// or not before the cursor, and when the cursor keeps moving. If the clocks of a Cluster's masters
// differ by more than a second, it fails with both instants in the error.
func (c *Client) Rewind(ctx context.Context, name string, to time.Time) (tick time.Time, err error) {
	r, err := call(ctx, c, rowRewind, rewindIn{Named: Named{name}, To: to})
	return r.Tick, err
}
