package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Overview is a namespace at a glance: running, late and next jobs, and how the ticks of the last
// day ended.
type Overview struct {
	Now     time.Time `json:"now" wire:"set"` // Redis' time
	Jobs    int       `json:"jobs"`
	Paused  int       `json:"paused"`
	Running int       `json:"running"`
	Pending int       `json:"pending"` // requested or due, and not granted yet
	// Late are jobs with a tick that was due more than 2 s ago and that no node has claimed, of the
	// 100 jobs that are due first.
	Late Names `json:"late"`
	// Since is how far back Ended and Failing go: a day, or less where so much has ended that no
	// more is read.
	Since time.Time `json:"since" wire:"set"`
	// Ended is how many ticks and runs have ended so since, by the words of RunView.Outcome.
	Ended map[jobs.Outcome]int64 `json:"ended"`
	// Failing are jobs whose latest run since then did not succeed.
	Failing Names `json:"failing"`
	// Next are the next ticks, of 12 jobs at most.
	Next []NextView `json:"next"`
}

// NextView is the next tick of a job.
type NextView struct {
	Job  string    `json:"job"`
	Tick time.Time `json:"tick" wire:"set"`
}

const (
	overviewDue   = 100     // jobs that are due first, which are looked at
	overviewNext  = 12      // of which so many are shown
	overviewLate  = 2000    // ms by which a tick is late that no node has claimed
	overviewRows  = 1000    // after so many ends, no older ends are read
	overviewLines = 16      // lines of the list of recently written jobs, at first
	overviewMost  = 1 << 12 // lines of that list that are read at most
)

var rowOverview = read("overview", "what runs, what is late, what comes next, and how the last day's ticks ended", plain(readOverview))

// Overview reads running and waiting runs, the jobs that are due first, and recent ends: as many as
// it takes for a day, or about a thousand. With an UnreachableError, the readable part is returned
// too.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return call(ctx, c, rowOverview, None{})
}

func readOverview(ctx context.Context, c *conn) (Overview, error) {
	l, parts, n, left, err := partsOf(ctx, c, "")
	if err != nil {
		return Overview{}, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Now: now, Jobs: n}
	open, err := query.InFlightIn(ctx, l, parts)
	if err != nil {
		return Overview{}, err
	}
	for _, r := range open {
		switch {
		case r.IsOpenTick:
		case r.Pending():
			o.Pending++
		default:
			o.Running++
		}
	}
	if err := o.ahead(ctx, l, now.UnixMilli()); err != nil {
		return Overview{}, err
	}
	return o, errors.Join(o.ended(ctx, l, parts, now.Add(-24*time.Hour).UnixMilli()), left)
}

// ahead fills in the late jobs and the next ticks.
func (o *Overview) ahead(ctx context.Context, l *ledger.Ledger, now int64) error {
	a, err := query.ListAhead(ctx, l, overviewDue)
	if _, err = beside(err); err != nil {
		return err
	}
	o.Paused = a.Paused
	due, err := query.Named(ctx, l, a.Jobs)
	if err != nil {
		return err
	}
	var late []string
	o.Next = []NextView{}
	for _, s := range due {
		d, err := jobs.ParseDefinition(s.Definition)
		if s.Err != nil || err != nil {
			continue // the reader of the job reports the fault
		}
		if next := nextTick(s, d.Job, now); next != 0 {
			o.Next = append(o.Next, NextView{s.Job, time.UnixMilli(next)})
		}
		if s.Cursor != 0 && s.Cursor < now-overviewLate && s.HolderRun == "" && !s.Pause.Holds(now) {
			late = append(late, s.Job)
		}
	}
	o.Late = namesOf(late)
	slices.SortStableFunc(o.Next, func(x, y NextView) int { return x.Tick.Compare(y.Tick) })
	o.Next = o.Next[:min(len(o.Next), overviewNext)]
	return nil
}

// ended fills in the ends since an instant, ms.
func (o *Overview) ended(ctx context.Context, l *ledger.Ledger, parts []int, day int64) error {
	var recent query.Recent
	for lines := int64(overviewLines); ; lines *= 4 {
		var err error
		if recent, err = query.ListRecent(ctx, l, parts, lines); err != nil {
			return err
		}
		rows := 0
		for _, n := range recent.Rows {
			rows += n
		}
		if rows >= overviewRows || !recent.More || recent.Since < day || lines >= overviewMost {
			break
		}
	}
	since := max(recent.Since, day)
	o.Since, o.Ended = time.UnixMilli(since), map[jobs.Outcome]int64{}
	var failing []string
	err := query.EachNewest(ctx, l, recent, func(h query.JobRows) bool {
		failed := false
		for _, r := range h.Rows {
			if r.At < since || r.TickID != "" || r.Ranged && r.Count == 0 {
				continue
			}
			o.Ended[r.Outcome] += max(1, r.Count)
			if !r.Ranged {
				failed = bad(r.Outcome)
			}
		}
		if failed {
			failing = append(failing, h.Job)
		}
		return true
	})
	o.Failing = namesOf(failing)
	return err
}

// bad reports whether an operator should examine a run with this outcome.
func bad(o jobs.Outcome) bool {
	return o == jobs.OutcomeFailed || o == jobs.OutcomeTimedOut || o == jobs.OutcomeLost || o == jobs.OutcomeAbandoned
}

// EndView is how an attempt of a tick, or a range of ticks, ended. See Encode for its JSON.
type EndView struct {
	Run      string        `json:"run"` // "" of a range
	Tick     time.Time     `json:"tick"`
	Until    time.Time     `json:"until,omitempty"` // of a range: its last tick
	Count    int64         `json:"count"`           // how many ticks
	Attempt  int           `json:"attempt"`         // 0 of a range
	Outcome  jobs.Outcome  `json:"outcome"`
	Reason   string        `json:"reason"`
	Started  time.Time     `json:"started,omitempty"` // null when it did not run
	Duration time.Duration `json:"duration_ms"`
}

const (
	endsJobs = 200    // bounds the jobs of one call of ListEnds
	endsMost = 10_000 // and how many ends in all
)

type endsIn struct {
	Jobs []string `query:"job" max:"200"`                       // one of the jobs; once for each
	Each int      `query:"each" default:"20" min:"1" max:"200"` // how many ends of each job, from 1 to 200; of all jobs 10,000 at most
}

var rowEnds = row(&Operation[endsIn, map[string][]EndView]{
	Info: Info{Method: "GET", Path: "ends", Role: Viewer, Summary: "how the latest ticks of some jobs ended, the oldest first"},
	do: func(ctx context.Context, c *conn, in endsIn) (map[string][]EndView, error) {
		return listEnds(ctx, c, in.Jobs, in.Each)
	},
})

// ListEnds lists how the latest ticks of some jobs ended, the oldest first, at most n of each;
// shards of a tick are not listed. Jobs that are not there have none. It returns ErrRefused for
// more than 200 jobs, for an n that is not from 1 to 200, and for more than 10,000 ends in all.
func (c *Client) ListEnds(ctx context.Context, names []string, n int) (map[string][]EndView, error) {
	return call(ctx, c, rowEnds, endsIn{names, n})
}

func listEnds(ctx context.Context, c *conn, names []string, n int) (map[string][]EndView, error) {
	if len(names) > endsJobs || n*len(names) > endsMost {
		return nil, fmt.Errorf("%w: list ends: %d of each of %d jobs; up to %d jobs, and %d ends in all", ErrRefused, n, len(names), endsJobs, endsMost)
	}
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	all, unread := make(map[string][]EndView, len(names)), []error(nil)
	err = query.EachTail(ctx, l, names, 4*int64(n), func(h query.JobRows) bool { // shards take rows too
		unread = append(unread, inspect.HistoryError(h.Job, h.Err))
		ends := []EndView{}
		for _, r := range h.Rows {
			if r.TickID == "" && (!r.Ranged || r.Count > 0) {
				v := rowView(r)
				ends = append(ends, EndView{v.Run, v.Tick, v.Until, max(1, r.Count), v.Attempt, v.Outcome, v.Reason, v.Started, v.Duration})
			}
		}
		all[h.Job] = ends[max(0, len(ends)-n):]
		return true
	})
	return all, errors.Join(append(unread, err)...)
}

// LastSuccess reads when runs of some jobs last succeeded, by the job's name. Jobs without a
// success and unknown jobs are left out. It is JobView.LastSuccess for many jobs, in a few calls.
// With an error, the readable successes are returned too. Over HTTP it lists all jobs.
func (c *Client) LastSuccess(ctx context.Context, names ...string) (map[string]time.Time, error) {
	if c.conn == nil {
		all, err := c.ListJobs(ctx, JobFilter{})
		at := make(map[string]time.Time, len(names))
		for _, j := range all.Items {
			if slices.Contains(names, j.Name) && !j.LastSuccess.IsZero() {
				at[j.Name] = j.LastSuccess
			}
		}
		return at, err
	}
	l, err := c.conn.Open(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := query.Named(ctx, l, names)
	if err != nil {
		return nil, err
	}
	latest, unread, err := inspect.ReadLatest(ctx, l, stored, func(string) bool { return false })
	at := make(map[string]time.Time, len(latest))
	for name, of := range latest {
		if of.Success != 0 {
			at[name] = time.UnixMilli(of.Success).UTC()
		}
	}
	return at, errors.Join(append(unread, err)...)
}
