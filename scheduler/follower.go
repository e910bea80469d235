package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// followEvery is how often a node reads the changes of the catalog of stored jobs.
	followEvery = 500 * time.Millisecond
	// declareEvery is how often a node declares its handlers again.
	declareEvery = time.Hour
	// takeLeast is how many changes a node collects before it changes its jobs. Each time costs as
	// much as the node has jobs, so a node with many of them collects a quarter of their number.
	takeLeast = 20_000
)

// followerConfig holds what a follower needs of its node.
type followerConfig struct {
	cfg      Config
	ledger   *ledger.Ledger
	jobs     *work.Jobs
	handlers map[string]jobs.Func // by name
	shapes   map[string]string    // of the payloads of these handlers
	clock    *lane.Clock
	health   *lane.Health
	log      *slog.Logger
	changing *sync.Mutex // guards changes of the jobs
	// change adds and removes jobs, with the revision that they then have. The caller holds the lock.
	change   func(in, out []*work.Job, revision string)
	followed *atomic.Bool // set when the catalog has been read
}

// follower keeps the node's stored jobs as the catalog has them. It is used by one goroutine.
type follower struct {
	followerConfig

	known    map[string]int64 // version of each job of the catalog, also of jobs without a handler here
	end      int64            // changes up to this version are known
	server   string           // Redis' id at the last read
	declared time.Time
	beside   map[string]catalog.Job // stored jobs whose names this program's jobs have
}

func newFollower(c followerConfig) *follower {
	return &follower{followerConfig: c, known: make(map[string]int64), beside: make(map[string]catalog.Job)}
}

// run follows the catalog until ctx ends.
func (f *follower) run(ctx context.Context) {
	const role = "catalog"
	for {
		switch err := f.step(ctx); {
		case err == nil:
			f.health.OK(role)
		case ctx.Err() == nil:
			f.health.Fail(role, err)
		}
		if !wait.For(ctx, followEvery) {
			return
		}
	}
}

func (f *follower) step(ctx context.Context) error {
	server := f.clock.Server()
	lost := server != f.server // the catalog of this server may be older than known
	if lost || time.Since(f.declared) > declareEvery {
		if err := catalog.DeclareHandlers(ctx, f.ledger, f.shapes, f.clock.Now().UnixMilli()); err != nil {
			return err
		}
		f.declared = time.Now()
	}
	var news []catalog.Job
	for name, j := range f.beside {
		if f.jobs.Named(name) == nil { // the program has dropped its own
			delete(f.known, name)
			news = append(news, j)
		}
	}
	for end := f.end; ; {
		c, err := catalog.Since(ctx, f.ledger, end)
		if err != nil {
			return err
		}
		lost, news, end = lost || c.Last < f.end, append(news, c.Jobs...), c.End
		if c.End < c.Last && len(news) < max(takeLeast, len(f.known)/4) {
			continue
		}
		f.take(news)
		if f.end, news = end, nil; c.End < c.Last {
			continue
		}
		if lost || c.Size != len(f.known) {
			err = f.compare(ctx)
		}
		if err == nil {
			f.server = server
			f.followed.Store(true)
		}
		return err
	}
}

// compare finds the differences between known and the whole catalog. Jobs that the catalog has
// lost, because Redis came back empty or without its last writes, are stored again.
func (f *follower) compare(ctx context.Context) error {
	names, err := catalog.Names(ctx, f.ledger)
	if err != nil {
		return err
	}
	var news []string
	for name, version := range names {
		if version > f.known[name] {
			news = append(news, name)
		}
	}
	found, err := catalog.Jobs(ctx, f.ledger, news...)
	if err != nil {
		return err
	}
	for _, j := range found {
		if j.Definition == "" { // deleted meanwhile; the next changes contain the deletion
			f.known[j.Job] = names[j.Job]
		}
	}
	f.take(found)
	var again []catalog.Change
	for name, version := range f.known {
		if names[name] >= version {
			continue
		}
		j := f.jobs.Named(name)
		if j == nil || j.Def.Stored != version {
			delete(f.known, name) // of which this node has no definition
			continue
		}
		text, err := json.Marshal(j.Def.AsStored())
		if err != nil {
			return err
		}
		again = append(again, catalog.Change{Job: name, Definition: string(text), Version: strconv.FormatInt(version, 10)})
	}
	for some := range slices.Chunk(again, catalog.Page) {
		answers, err := catalog.Apply(ctx, f.ledger, some)
		if err != nil {
			return err
		}
		var older []catalog.Job // older than the stored job: dropped here, and compared again
		for i, a := range answers {
			if !a.Done {
				older = append(older, catalog.Job{Job: some[i].Job, Version: a.Version})
			}
		}
		f.take(older)
	}
	if len(again) > 0 {
		f.log.Warn("stored jobs that Redis had lost are stored again", "jobs", len(again))
	}
	return nil
}

// take changes the node's jobs to the definitions that were read from the catalog.
func (f *follower) take(list []catalog.Job) {
	f.changing.Lock()
	defer f.changing.Unlock()
	var in, out []*work.Job
	for _, c := range list {
		if f.known[c.Job] >= c.Version {
			continue
		}
		f.known[c.Job] = c.Version
		delete(f.beside, c.Job)
		if c.Definition == "" {
			delete(f.known, c.Job)
		}
		has := f.jobs.Named(c.Job)
		if has != nil && has.Def.Stored == 0 {
			if c.Definition == "" {
				continue
			}
			f.log.Warn("a stored job has the name of a job of this program: the one that was there first runs; delete the stored one, or rename the program's", "job", c.Job)
			f.beside[c.Job] = c
			continue
		}
		if has != nil {
			out = append(out, has)
		}
		if c.Definition == "" {
			continue
		}
		j, err := f.storedJob(c)
		if err != nil {
			f.log.Warn("this node does not run a stored job", "job", c.Job, "error", err)
			continue
		}
		in = append(in, j)
	}
	if len(in)+len(out) > 0 {
		f.change(in, out, f.jobs.Revision())
	}
}

// storedJob makes a job from the catalog. The error is why this node cannot run the job.
func (f *follower) storedJob(c catalog.Job) (*work.Job, error) {
	d, err := jobs.ParseDefinition([]byte(c.Definition))
	if err != nil {
		return nil, err
	}
	j := d.Job
	if j.Func = f.handlers[j.Handler]; j.Func == nil {
		return nil, fmt.Errorf("it has no handler %q", j.Handler)
	}
	j = j.WithDefaults(jobs.Defaults{})
	reg := jobs.NewRegistry()
	err = reg.Add(withoutUpstreams(j)) // checks the job
	if len(j.After) > 0 && err == nil {
		err = j.Validate() // withoutUpstreams leaves out its upstreams
	}
	if err = errors.Join(err, f.cfg.validate(reg)); err != nil {
		return nil, err
	}
	made, err := jobsOf([]jobs.Job{j}, f.cfg)
	if err != nil {
		return nil, err
	}
	made[0].Def.Stored = c.Version
	made[0].Digest = made[0].Def.Digest()
	return made[0], nil
}

// isStored reports whether a job is of the catalog, and not of the program.
func isStored(j *work.Job) bool { return j.Def.Stored > 0 }

// withoutUpstreams returns a stored job for the checks of a registry that lacks its upstreams. They
// were checked when the job was stored.
func withoutUpstreams(j jobs.Job) jobs.Job {
	if len(j.After) > 0 {
		j.Schedule, j.After, j.When = "@hourly", nil, jobs.WhenSucceeded
	}
	return j
}
