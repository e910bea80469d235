package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// Errors of an Inspector that a tool tells apart.
var (
	// ErrUnknownNamespace is returned when no node has ever run in the namespace.
	ErrUnknownNamespace = ledger.ErrNoNamespace
	// ErrUnknownJob is returned when the namespace has no job of that name.
	ErrUnknownJob = ledger.ErrUnknownJob
	// ErrUnknownRun is returned when neither a run in flight nor the history has that id.
	ErrUnknownRun = ledger.ErrUnknownRun
	// ErrRefused is returned when a request was understood and will not be carried out.
	ErrRefused = ledger.ErrRefused
)

// waitEvery is how often Wait looks.
const waitEvery = 100 * time.Millisecond

// Inspector reads a namespace, and enqueues runs by hand, without being a node: for the command
// line, an API, a console. It is safe for concurrent use and keeps nothing.
type Inspector struct {
	client    redis.UniversalClient
	namespace string
}

// NewInspector makes an inspector of a namespace ("" is "escapement"); it talks to nobody yet.
func NewInspector(client redis.UniversalClient, namespace string) (*Inspector, error) {
	if err := redisconn.Check(client); err != nil {
		return nil, err
	}
	return &Inspector{client: client, namespace: Config{Namespace: namespace}.withDefaults().Namespace}, nil
}

func (i *Inspector) open(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.OpenExisting(ctx, i.client, ledger.Config{Namespace: i.namespace})
}

func (i *Inspector) roster() *sharding.Roster {
	return sharding.NewRoster(i.client, sharding.RosterConfig{Namespace: i.namespace, TTL: rosterTTL})
}

// Jobs lists all jobs by name. Jobs that this version cannot read are left out and named in the
// error, which then wraps ledger.ErrForeign and comes beside the others.
func (i *Inspector) Jobs(ctx context.Context) ([]JobView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := i.owners(ctx, all)
	if err != nil {
		return nil, err
	}
	views, unread := make([]JobView, 0, len(all)), []error(nil)
	for _, s := range all {
		v, err := jobView(s, owners[s.Job])
		if err != nil {
			unread = append(unread, fmt.Errorf("job %s: %w", s.Job, err))
			continue
		}
		views = append(views, v)
	}
	return views, errors.Join(unread...)
}

// Job reads one job; ErrUnknownJob when there is none of that name.
func (i *Inspector) Job(ctx context.Context, name string) (JobView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return JobView{}, err
	}
	s, err := l.Job(ctx, name)
	if err != nil {
		return JobView{}, err
	}
	owners, err := i.owners(ctx, []ledger.Stored{s})
	if err != nil {
		return JobView{}, err
	}
	return jobView(s, owners[name])
}

// owners names, for each job, the living node that goes first.
func (i *Inspector) owners(ctx context.Context, all []ledger.Stored) (map[string]string, error) {
	roster := i.roster()
	members, err := roster.Members(ctx)
	if err != nil {
		return nil, redisconn.Explain("read the roster", err)
	}
	c := &crowd{}
	var digests []string
	for _, m := range members {
		if m.State != sharding.StateGone {
			c.nodes, digests = append(c.nodes, m.Node), append(digests, m.Set)
		}
	}
	if c.sets, err = roster.Sets(ctx, digests); err != nil && !errors.Is(err, sharding.ErrDamaged) {
		return nil, redisconn.Explain("read the roster", err)
	}
	owners := make(map[string]string, len(all))
	for _, s := range all {
		d, err := jobs.ParseDefinition(s.Definition)
		if err != nil {
			continue // jobView says what is wrong with it
		}
		held := c.holders(&job{Job: d.Job(), digest: s.Digest})
		if first, ok := sharding.Owner(s.Job, held); ok {
			owners[s.Job] = first.Name
		}
	}
	return owners, nil
}

// RunFilter restricts Runs; zero fields do not.
type RunFilter struct {
	Job     string
	Since   time.Time // by tick
	Outcome string    // one of the words of RunView.Outcome
	Limit   int       // newest ones; 0 is all
}

// Runs lists runs in flight and recorded ones, newest tick first.
func (i *Inspector) Runs(ctx context.Context, f RunFilter) ([]RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	if f.Job != "" {
		if _, err := l.Job(ctx, f.Job); err != nil {
			return nil, err
		}
		names = []string{f.Job}
	} else if names, err = jobNames(ctx, l); err != nil {
		return nil, err
	}
	open, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	rows, _, err := l.History(ctx, names)
	if err != nil {
		return nil, err
	}
	views := f.pick(open, rows)
	slices.SortStableFunc(views, func(a, b RunView) int { return strings.Compare(tickOf(b), tickOf(a)) })
	if f.Limit > 0 && len(views) > f.Limit {
		views = views[:f.Limit]
	}
	return views, nil
}

func jobNames(ctx context.Context, l *ledger.Ledger) ([]string, error) {
	all, err := l.Jobs(ctx)
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Job
	}
	return names, err
}

func (f RunFilter) pick(open []ledger.Lease, rows map[string][]ledger.Row) []RunView {
	views := []RunView{}
	add := func(v RunView) {
		if (f.Outcome == "" || f.Outcome == v.Outcome) && (f.Since.IsZero() || v.Tick != nil && !time.Time(*v.Tick).Before(f.Since)) {
			views = append(views, v)
		}
	}
	for _, l := range open {
		if f.Job == "" || l.Job == f.Job {
			add(openView(l))
		}
	}
	for _, list := range rows {
		for _, r := range slices.Backward(list) {
			add(rowView(r))
		}
	}
	return views
}

func tickOf(v RunView) string {
	if v.Tick == nil {
		return ""
	}
	return v.Tick.String()
}

// Run finds one run by its id, or by the id it was asked for; ErrUnknownRun when neither a run in
// flight nor the history has it.
func (i *Inspector) Run(ctx context.Context, id string) (RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return RunView{}, err
	}
	open, err := l.Open(ctx)
	if err != nil {
		return RunView{}, err
	}
	for _, o := range open {
		if o.Run == id || o.Request == id {
			return openView(o), nil
		}
	}
	names, err := jobNames(ctx, l)
	if err != nil {
		return RunView{}, err
	}
	rows, _, err := l.History(ctx, names)
	if err != nil {
		return RunView{}, err
	}
	for _, list := range rows {
		for _, r := range list {
			if r.Run == id || r.Request == id && id != "" {
				return rowView(r), nil
			}
		}
	}
	return RunView{}, fmt.Errorf("%w: %q; `runs list` shows what the history still has", ErrUnknownRun, id)
}

// TriggerOptions are the options of Trigger; the zero value is useful.
type TriggerOptions struct {
	// Payload is handed to the function; JSON, at most 64 KiB.
	Payload []byte
}

// Trigger enqueues one run of a job, now, beside its schedule, and returns the run's id.
func (i *Inspector) Trigger(ctx context.Context, name string, o TriggerOptions) (string, error) {
	if len(o.Payload) > 0 && !json.Valid(o.Payload) {
		return "", fmt.Errorf("%w: the payload is not JSON; quote a plain text: '\"text\"'", ErrRefused)
	}
	l, err := i.open(ctx)
	if err != nil {
		return "", err
	}
	id := newID()
	return id, l.Trigger(ctx, name, id, o.Payload)
}

// Wait returns the run when it has ended, or ctx's error.
func (i *Inspector) Wait(ctx context.Context, id string) (RunView, error) {
	for {
		v, err := i.Run(ctx, id)
		if err != nil || v.Outcome != jobs.OutcomeRunning.String() {
			return v, err
		}
		if !pause(ctx, waitEvery) {
			return v, fmt.Errorf("wait for run %s: %w", id, context.Cause(ctx))
		}
	}
}

// Nodes lists the nodes in the roster.
func (i *Inspector) Nodes(ctx context.Context) ([]NodeView, error) {
	if _, err := i.open(ctx); err != nil {
		return nil, err
	}
	members, err := i.roster().Members(ctx)
	if err != nil {
		return nil, redisconn.Explain("list nodes", err)
	}
	views := make([]NodeView, len(members))
	for k, m := range members {
		views[k] = nodeView(m)
	}
	return views, nil
}

// Violation is one thing that is wrong with a job's books.
type Violation = ledger.Violation

// Verify checks that the history's chain of one job, or with "" of all, closes.
func (i *Inspector) Verify(ctx context.Context, name string) ([]Violation, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	return l.Verify(ctx, name)
}
