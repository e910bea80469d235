package ops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// GraphJob is an upstream, a follower, or both.
type GraphJob struct {
	Name        string       `json:"name"`
	Schedule    string       `json:"schedule"` // "" for a follower
	TimeZone    string       `json:"time_zone"`
	After       []string     `json:"after"` // the jobs that it follows, which need not be there any more
	When        string       `json:"when"`  // after which ends of theirs it runs; "" for a job with a schedule
	Followers   []string     `json:"followers"`
	Last        time.Time    `json:"last"`         // the latest tick accounted for
	LastOutcome jobs.Outcome `json:"last_outcome"` // of the run or tick that was recorded last; "" for none
	Paused      bool         `json:"paused"`
	Open        string       `json:"open"` // the run that holds it, granted or pending, "" for none
}

// graphPage is how many definitions Graph has in memory at once.
const graphPage = 10_000

var rowGraph = read("graph", "the jobs that follow others, and those that others follow", plain(readGraph)).slow()

// Graph reads which job follows which, by name: all upstreams and all followers. It reads all
// definitions. Jobs in an unknown format are left out, and named in the error beside the other jobs
// if they may belong to the graph.
func (c *Client) Graph(ctx context.Context) ([]GraphJob, error) {
	return call(ctx, c, rowGraph, None{})
}

func readGraph(ctx context.Context, c *conn) ([]GraphJob, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	names, left := query.Names(ctx, l, l.All())
	if names == nil && left != nil {
		return nil, left
	}
	all, followers, unread, err := following(ctx, l, names)
	if err != nil {
		return nil, err
	}
	left = errors.Join(left, unread)
	upstreams, err := query.Named(ctx, l, others(followers, all))
	if err != nil {
		return nil, err
	}
	var shown []query.Stored
	var views []JobView
	for _, s := range append(all, upstreams...) {
		if s.Err != nil {
			continue // following has named it
		}
		v, err := jobView(s, inspect.Holding{}, now, ledger.Pause{})
		if err != nil {
			left = errors.Join(left, err)
			continue
		}
		shown, views = append(shown, s), append(views, v)
	}
	left = errors.Join(left, addLatest(ctx, l, shown, views))
	graph := make([]GraphJob, 0, len(views))
	for _, v := range views {
		slices.Sort(followers[v.Name])
		when := ""
		if len(v.After) > 0 {
			when = v.When.String()
		}
		graph = append(graph, GraphJob{Name: v.Name, Schedule: v.Schedule, TimeZone: v.TimeZone, After: append([]string{}, v.After...), When: when,
			Followers: append([]string{}, followers[v.Name]...), Last: v.Last, LastOutcome: v.LastOutcome, Paused: v.Paused, Open: v.Open})
	}
	slices.SortFunc(graph, func(a, b GraphJob) int { return strings.Compare(a.Name, b.Name) })
	return graph, left
}

// following reads the followers, and the followers of each upstream. unread names the unreadable
// definitions. A definition is parsed only if its text has the key: most jobs are no followers.
func following(ctx context.Context, l *ledger.Ledger, names []string) (all []query.Stored, followers map[string][]string, unread, err error) {
	followers = make(map[string][]string)
	for page := range slices.Chunk(names, graphPage) {
		some, err := query.Named(ctx, l, page)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, s := range some {
			if s.Err == nil && !bytes.Contains(s.Definition, []byte(`"after"`)) {
				continue
			}
			d, err := jobs.ParseDefinition(s.Definition)
			if err = cmp.Or(s.Err, err); err != nil {
				unread = errors.Join(unread, err)
				continue
			}
			for _, upstream := range d.After {
				followers[upstream] = append(followers[upstream], s.Job)
			}
			if len(d.After) > 0 {
				all = append(all, s)
			}
		}
	}
	return all, followers, unread, nil
}

// others are the upstreams that follow no job themselves.
func others(followers map[string][]string, all []query.Stored) []string {
	rest := maps.Clone(followers)
	for _, s := range all {
		delete(rest, s.Job)
	}
	return slices.Collect(maps.Keys(rest))
}
