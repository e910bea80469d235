package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// JobView is a job as tools and the API show it. Its JSON has all settings and the state in one
// object.
type JobView struct {
	jobs.Job `json:"-"` // the settings, without a function

	Next time.Time `json:"next"` // the next tick that runs, not before the end of a pause; null for none
	Last time.Time `json:"last"` // the latest tick accounted for, null before the first
	// Owner is the node that goes first, of a sharded or raced job one of them; "" when no living
	// node can run it. In a namespace of more than 1,000 jobs it is the node that hashing prefers,
	// and another one for a few jobs in a thousand where nodes are many.
	Owner      string    `json:"owner"`
	Paused     bool      `json:"paused"`
	Generation string    `json:"generation"`
	Revision   string    `json:"revision"`
	Stored     time.Time `json:"stored"`            // when it was stored, of a job that is stored at run time; null for one of a program
	Orphan     bool      `json:"orphan"`            // no living node of its generation holds it: it stands still until one does
	NoNode     string    `json:"no_node,omitempty"` // why no living node can run it, "" when one can
	Open       string    `json:"open"`              // the run that holds it, granted or pending, "" for none
	// Superseded are living nodes of the job's generation that hold another definition than the
	// stored one; Standby are nodes of another generation that hold a definition of their own; by
	// name, the first 20.
	Superseded []string `json:"superseded,omitempty"`
	Standby    []string `json:"standby,omitempty"`
	// Pause has the details while the job is paused.
	Pause *PauseView `json:"pause,omitempty"`
	// Counts is how many ticks and runs ended so, by the words of RunView.Outcome, since the job was
	// first registered.
	Counts map[jobs.Outcome]int64 `json:"counts"`
	// Ran is, of a job with MaxRuns, how many of its ticks were granted. From MaxRuns on the job is
	// finished: it has no further ticks.
	Ran int64 `json:"ran,omitempty"`
	// HistoryFrom is the tick with which the recorded history begins, and the earliest to which the
	// cursor can be set back; null for a job that follows another.
	HistoryFrom time.Time `json:"history_from"`
	// LastOutcome is how the run or tick ended that was recorded last, "" before the first.
	LastOutcome jobs.Outcome `json:"last_outcome"`
	// LastSuccess is when a run last succeeded, however long that is ago; null where none did.
	LastSuccess time.Time `json:"last_success"`
	// TrimmedTo is HistoryFrom when rows before it have been dropped already, else null. Reading it
	// takes the whole history: only GetJob fills it in.
	TrimmedTo time.Time `json:"trimmed_to"`
	// UnknownFormat is how many rows of the history this version does not understand; as TrimmedTo.
	UnknownFormat int `json:"left_alone,omitempty"`
}

// PauseView is since when a job is paused, until when, by whom and why.
type PauseView struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // null: until an operator resumes the job
	Author string    `json:"author"`
	Reason string    `json:"reason"`
}

// JobFilter is a page of the list of jobs, which is in the order of their names.
type JobFilter struct {
	Match string `query:"q"`                                      // a part of the name, in any case of letters
	After string `query:"after"`                                  // the page begins behind this name
	Limit int    `query:"limit" default:"100" min:"1" max:"1000"` // how many at most; 0 is all
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

func listJobs(ctx context.Context, c *conn, f JobFilter) (Page[JobView], error) {
	l, err := c.Open(ctx)
	if err != nil {
		return Page[JobView]{}, err
	}
	shown, around, next, err := inspect.ReadPage(ctx, l, f.Match, f.After, f.Limit)
	left, err := beside(err)
	if err != nil {
		return Page[JobView]{}, err
	}
	views, err := jobViews(ctx, c, l, shown, around)
	if views == nil {
		return Page[JobView]{}, err
	}
	return Page[JobView]{Items: views, Next: next}, errors.Join(err, left)
}

var rowJobNames = read("job-names", "the names of all jobs, in order", plain(jobNames))

// JobNames are the names of all jobs, in order. With an UnreachableError, the readable names are
// returned too.
func (c *Client) JobNames(ctx context.Context) ([]string, error) {
	return call(ctx, c, rowJobNames, None{})
}

func jobNames(ctx context.Context, c *conn) ([]string, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	names, err := query.Names(ctx, l, l.All())
	slices.Sort(names)
	return names, err
}

var rowGetJob = read("jobs/{name}", "one job", byName(getJob))

// GetJob reads one job. It returns ErrUnknownJob when there is none of that name, and an error that
// wraps ErrUnknownFormat for a job in an unknown format. With an UnreachableError the job is
// returned too, and its owner may be another one: the owner depends on all jobs.
func (c *Client) GetJob(ctx context.Context, name string) (JobView, error) {
	return call(ctx, c, rowGetJob, named{name})
}

func getJob(ctx context.Context, c *conn, name string) (JobView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return JobView{}, err
	}
	s, err := query.Job(ctx, l, name)
	if err != nil {
		return JobView{}, err
	}
	rows, foreign, err := query.History(ctx, l, []string{name})
	if err != nil {
		return JobView{}, inspect.HistoryError(name, err)
	}
	around, err := inspect.Around(ctx, l, []string{name})
	left, err := beside(err)
	if err != nil {
		return JobView{}, err
	}
	views, err := jobViews(ctx, c, l, []query.Stored{s}, around)
	if err != nil {
		return JobView{}, err
	}
	if foreign == 0 && audit.HistoryTrimmed(s.Entry, rows[name]) { // the entry was read before the rows
		views[0].TrimmedTo = views[0].HistoryFrom
	}
	views[0].UnknownFormat = foreign
	return views[0], left
}

// jobViews returns the views that could be made, and errors.Join of the faults of the rest.
func jobViews(ctx context.Context, c *conn, l *ledger.Ledger, shown []query.Stored, around inspect.Page) ([]JobView, error) {
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	held, err := inspect.Holders(ctx, l, c.Roster(), around)
	if err != nil {
		return nil, err
	}
	var paused []string
	for _, s := range shown {
		if s.Pause.Holds(now.UnixMilli()) {
			paused = append(paused, s.Job)
		}
	}
	pauses, err := operate.Pauses(ctx, l, paused...)
	if err != nil {
		return nil, err
	}
	views, unread := make([]JobView, 0, len(shown)), []error(nil)
	for _, s := range shown {
		v, err := jobView(s, held[s.Job], now, pauses[s.Job])
		if err != nil {
			unread = append(unread, fmt.Errorf("job %s: %w", s.Job, err))
			continue
		}
		views = append(views, v)
	}
	return views, errors.Join(append(unread, addLatest(ctx, l, shown, views))...)
}

// addLatest fills in how the latest runs of jobs ended.
func addLatest(ctx context.Context, l *ledger.Ledger, shown []query.Stored, views []JobView) error {
	follows := make(map[string]bool)
	for _, v := range views {
		follows[v.Name] = len(v.After) > 0
	}
	latest, unread, err := inspect.ReadLatest(ctx, l, shown, func(job string) bool { return follows[job] })
	for k, v := range views {
		of := latest[v.Name]
		views[k].LastOutcome, views[k].LastSuccess = of.Outcome, timeOf(of.Success)
		if len(v.After) > 0 && v.Last.IsZero() { // it has no cursor, only a history
			views[k].Last = timeOf(of.Tick)
		}
	}
	return errors.Join(append(unread, err)...)
}

func jobView(s query.Stored, h inspect.Holding, now time.Time, p ledger.Pause) (JobView, error) {
	if s.Err != nil {
		return JobView{}, s.Err
	}
	d, err := jobs.ParseDefinition(s.Definition)
	if err != nil {
		return JobView{}, err
	}
	j := d.Job
	v := JobView{
		Job: j, Next: timeOf(nextTick(s, j, now.UnixMilli())), Last: timeOf(lastTick(s.Entry, j)), Owner: h.Owner, Revision: s.Revision,
		Stored: timeOf(d.Stored), Generation: d.Generation, Orphan: h.Orphan, NoNode: h.NoNode, Superseded: first(h.Superseded), Standby: first(h.Standby),
		Open: s.HolderRun, HistoryFrom: timeOf(s.Base), Paused: s.Pause.Holds(now.UnixMilli()), Counts: make(map[jobs.Outcome]int64, len(s.Counts)),
	}
	if j.MaxRuns > 0 {
		v.Ran = s.Ran
	}
	for o, n := range s.Counts {
		v.Counts[o] = n
	}
	if v.Paused {
		v.Pause = pauseView(s.Pause, p)
	}
	return v, nil
}

// pauseView takes the end from the window, which decides, and the rest from the stored pause.
func pauseView(w ledger.Window, p ledger.Pause) *PauseView {
	v := &PauseView{Since: timeOf(w.From), Until: timeOf(w.To), Author: p.Author, Reason: p.Reason}
	if p.Since != 0 {
		v.Since = timeOf(p.Since) // the window may begin before it, with a tick that was due and not claimed
	}
	return v
}

// nextTick is the next tick that runs, ms; 0 for none. Ticks during a pause do not run.
func nextTick(s query.Stored, j jobs.Job, now int64) int64 {
	if j.MaxRuns > 0 && s.Ran >= int64(j.MaxRuns) {
		return 0
	}
	if !s.Pause.Holds(now) {
		return s.Cursor
	}
	schedule, err := j.ParsedSchedule()
	if s.Pause.To == 0 || err != nil || schedule == nil {
		return 0
	}
	next := schedule.Next(time.UnixMilli(s.Pause.To - 1))
	if next.IsZero() {
		return 0
	}
	return max(s.Cursor, next.UnixMilli())
}

// lastTick is the latest tick accounted for, ms. A cursor that was set back stands 1 ms behind an
// instant that is none.
func lastTick(e ledger.Entry, j jobs.Job) int64 {
	if e.Last == 0 || e.Cursor != e.Last+1 {
		return e.Last
	}
	schedule, err := j.ParsedSchedule()
	if err != nil || schedule == nil {
		return e.Last
	}
	tick := schedule.Prev(time.UnixMilli(e.Cursor))
	if tick.IsZero() || tick.UnixMilli() < e.Base {
		return 0
	}
	return tick.UnixMilli()
}
