package storecheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// checkUpstreams: every upstream of the jobs to be stored exists, stored or a program's, there is
// no circle, and the upstreams of one job begin with the same ticks, also where another job follows
// a job to be stored. The rest of the catalog is not checked again.
func checkUpstreams(ctx context.Context, l *ledger.Ledger, list []jobs.Job) error {
	c := chains{reg: jobs.NewRegistry(), mine: make(map[string]bool), by: make(map[string]string)}
	for _, j := range list {
		c.mine[j.Name] = true
		c.add(j)
	}
	if err := c.addFollowers(ctx, l, list); err != nil {
		return err
	}
	if err := c.addUpstreams(ctx, l); err != nil {
		return err
	}
	return c.check()
}

// chains are jobs to be stored, with their upstreams and followers.
type chains struct {
	reg   *jobs.Registry
	mine  map[string]bool   // the jobs to be stored
	by    map[string]string // unknown jobs, each with a follower
	ghost []string          // unknown jobs of known followers
}

// add adds a job, as far as its ticks are concerned.
func (c *chains) add(j jobs.Job) {
	delete(c.by, j.Name)
	_ = c.reg.Add(jobs.Job{Name: j.Name, Schedule: j.Schedule, TimeZone: j.TimeZone, Except: j.Except, Only: j.Only, StartAt: j.StartAt, EndAt: j.EndAt, Jitter: j.Jitter,
		After: j.After, Func: func(context.Context, *jobs.Run) error { return nil }}) // a fault of its own is found elsewhere
	for _, name := range j.After {
		if _, known := c.reg.Get(name); !known {
			c.by[name] = j.Name
		}
	}
}

// addFollowers adds the direct and indirect followers of the jobs whose ticks change.
func (c *chains) addFollowers(ctx context.Context, l *ledger.Ledger, list []jobs.Job) error {
	names := make([]string, len(list))
	for i, j := range list {
		names[i] = j.Name
	}
	followers, err := follow.Followers(ctx, l, names)
	if err != nil {
		return err
	}
	followed := make(map[string]string)
	for name := range followers {
		followed[name] = name
	}
	were, err := definitionsOf(ctx, l, followed)
	if err != nil {
		return err
	}
	for _, j := range list {
		if d, there := were[j.Name]; !there || begins(j) == begins(d.Job) {
			delete(followers, j.Name)
		}
	}
	for len(followers) > 0 {
		next := make(map[string]string)
		for upstream, names := range followers {
			for _, name := range names {
				if _, known := c.reg.Get(name); !known {
					next[name] = upstream
				}
			}
		}
		found, err := definitionsOf(ctx, l, next)
		if err != nil {
			return err
		}
		names = names[:0]
		for name, d := range found {
			if slices.Contains(d.After, next[name]) { // else it did before
				c.add(d.Job)
				names = append(names, name)
			}
		}
		if followers, err = follow.Followers(ctx, l, names); err != nil {
			return err
		}
	}
	return nil
}

// begins describes the ticks of a job, or names its upstreams.
func begins(j jobs.Job) string {
	if len(j.After) > 0 {
		return strings.Join(j.After, ",")
	}
	s, err := j.ParsedSchedule()
	if err != nil {
		return ""
	}
	return "at " + s.Resolved()
}

// addUpstreams adds the direct and indirect upstreams of all chains.
func (c *chains) addUpstreams(ctx context.Context, l *ledger.Ledger) error {
	var faults []error
	for len(c.by) > 0 {
		found, err := definitionsOf(ctx, l, c.by)
		if err != nil {
			return err
		}
		for name, follower := range maps.Clone(c.by) { // add changes it
			d, there := found[name]
			if !there && c.mine[follower] {
				faults = append(faults, fmt.Errorf("%w: put job %s: %w", ledger.ErrRefused, follower,
					&jobs.FieldError{Field: "after", Msg: fmt.Sprintf("there is no job %q, stored or of a program; store that one first", name)}))
			}
			if !there {
				c.ghost = append(c.ghost, name)
				d.Name, d.Schedule = name, "@hourly" // the schedule is unknown; see check
			}
			c.add(d.Job)
		}
	}
	return errors.Join(faults...)
}

// check checks all chains together. A chain with an unknown job cannot be compared.
func (c *chains) check() error {
	err := c.reg.Check()
	each, several := err.(interface{ Unwrap() []error })
	if err == nil || !several {
		return err
	}
	var faults []error
	for _, err := range each.Unwrap() {
		fault := (*jobs.FieldError)(nil)
		switch {
		case errors.As(err, &fault) && c.hangs(fault.Job):
		case fault != nil && !c.mine[fault.Job]:
			faults = append(faults, fmt.Errorf("%w: put: job %s follows what is put: %w; or put that job too, in the same call", ledger.ErrRefused, fault.Job, err))
		default:
			faults = append(faults, fmt.Errorf("%w: put %w", ledger.ErrRefused, err))
		}
	}
	return errors.Join(faults...)
}

// hangs reports whether one of the jobs that a job follows begins with a job that is not there.
func (c *chains) hangs(name string) bool {
	j, _ := c.reg.Get(name)
	return slices.ContainsFunc(j.After, func(up string) bool {
		for range len(c.reg.All()) { // there may be a circle
			next, _ := c.reg.Get(up)
			if len(next.After) == 0 {
				break
			}
			up = next.After[0]
		}
		return slices.Contains(c.ghost, up)
	})
}

// definitionsOf reads the definitions of jobs, stored or, else, registered. Definitions in an
// unknown format are left out.
func definitionsOf(ctx context.Context, l *ledger.Ledger, of map[string]string) (map[string]jobs.Definition, error) {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	found := make(map[string]jobs.Definition)
	entries, err := query.Named(ctx, l, names)
	if err != nil {
		return nil, err
	}
	for _, s := range entries {
		if d, err := jobs.ParseDefinition(s.Definition); s.Err == nil && err == nil {
			found[s.Job] = d
		}
	}
	stored, err := catalog.Jobs(ctx, l, names...)
	for _, s := range stored {
		if d, err := jobs.ParseDefinition([]byte(s.Definition)); s.Definition != "" && err == nil {
			found[s.Job] = d
		}
	}
	return found, err
}
