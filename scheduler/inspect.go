package scheduler

import (
	"context"
	"errors"
	"fmt"

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
