package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// GraphJob is a job that follows others, or that others follow.
type GraphJob struct {
	Name        string   `json:"name"`
	Schedule    string   `json:"schedule"` // "" for a job that follows others
	TimeZone    string   `json:"time_zone"`
	After       []string `json:"after"` // the jobs that it follows, which need not be there any more
	When        string   `json:"when"`  // after which ends of theirs it runs; "" for a job with a schedule
	Followers   []string `json:"followers"`
	Last        *Stamp   `json:"last"`         // the latest tick accounted for
	LastOutcome string   `json:"last_outcome"` // of the run or tick that was recorded last; "" for none
	Paused      bool     `json:"paused"`
	Open        string   `json:"open"` // the run that holds it, granted or pending, "" for none
}

// Graph reads which job follows which, by name: the jobs that follow others, and those that others follow. It reads all definitions.
// Jobs that this version cannot read are left out and named in the error, which then comes beside the others.
func (c *Client) Graph(ctx context.Context) ([]GraphJob, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	now, _, err := l.Time(ctx)
	if err != nil {
		return nil, err
	}
	names, left := l.Names(ctx, l.All())
	if names == nil && left != nil {
		return nil, left
	}
	all, err := l.Named(ctx, names)
	if err != nil {
		return nil, err
	}
	followers := make(map[string][]string)
	after := make(map[string]jobs.Definition)
	for _, s := range all {
		d, err := jobs.ParseDefinition(s.Definition)
		if err = errors.Join(s.Err, err); err != nil {
			left = errors.Join(left, err)
			continue
		}
		after[s.Job] = d
		for _, upstream := range d.After.Names {
			followers[upstream] = append(followers[upstream], s.Job)
		}
	}
	var shown []ledger.Stored
	var views []JobView
	for _, s := range all {
		if d, read := after[s.Job]; read && (!d.After.IsZero() || len(followers[s.Job]) > 0) {
			v, err := jobView(s, inspect.Holding{}, now, ledger.Pause{})
			if err != nil {
				return nil, err
			}
			shown, views = append(shown, s), append(views, v)
		}
	}
	left = errors.Join(left, addLatest(ctx, l, shown, views))
	graph := make([]GraphJob, 0, len(views))
	for _, v := range views {
		slices.Sort(followers[v.Name])
		graph = append(graph, GraphJob{Name: v.Name, Schedule: v.Schedule, TimeZone: v.TimeZone, After: v.Upstreams, When: v.When,
			Followers: append([]string{}, followers[v.Name]...), Last: v.Last, LastOutcome: v.LastOutcome, Paused: v.Paused, Open: v.Open})
	}
	slices.SortFunc(graph, func(a, b GraphJob) int { return strings.Compare(a.Name, b.Name) })
	return graph, left
}
