package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
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
	// ErrUnknownNode is returned when no node in the roster has that name.
	ErrUnknownNode = errors.New("no node of that name")
	// ErrRefused is returned when a request was understood and will not be carried out.
	ErrRefused = ledger.ErrRefused
	// ErrClosed is returned when a move to another Redis has closed the namespace: nothing new begins there any more.
	ErrClosed = ledger.ErrClosed
	// ErrForeign is returned for a record that this version cannot read; it is left alone.
	ErrForeign = ledger.ErrForeign
)

// UnheardError says which partitions a list has left out, because their masters of a Cluster did not answer. It wraps
// locking.ErrUnreachable, and comes beside what the others have.
type UnheardError = ledger.UnheardError

// beside takes an UnheardError out of err.
func beside(err error) (left, other error) {
	if errors.As(err, new(*UnheardError)) {
		return err, nil
	}
	return nil, err
}

// Inspector reads a namespace, and changes in it what an operator may change, without being a node:
// for the command line, an API, a console. It is safe for concurrent use and keeps nothing. Every
// method wraps locking.ErrUnreachable when Redis does not answer; what was asked for may then have
// been done all the same, and a Cluster client looks who is master before the next call. A look for runs
// that ends with its context, while Redis answers, returns the context's error.
type Inspector struct {
	client    redis.UniversalClient
	namespace string
}

// NewInspector makes an inspector of a namespace ("" is "escapement"); it talks to nobody yet.
func NewInspector(client redis.UniversalClient, namespace string) (*Inspector, error) {
	if err := redisconn.Check(client); err != nil {
		return nil, err
	}
	if err := (ledger.Config{Namespace: namespace}).Validate(); err != nil {
		return nil, err
	}
	return &Inspector{client: client, namespace: cmp.Or(namespace, ledger.DefaultNamespace)}, nil
}

func (i *Inspector) open(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.OpenExisting(ctx, i.client, ledger.Config{Namespace: i.namespace})
}

// openAppend is open for what appends rows: it drops none, for only nodes know how many are to be kept.
func (i *Inspector) openAppend(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.OpenExisting(ctx, i.client, ledger.Config{Namespace: i.namespace, Keep: math.MaxInt32, KeepFor: math.MaxInt64})
}

// roster lies beside the control record: open, which comes before it in most calls, finds out whether their master answers.
func (i *Inspector) roster() *sharding.Roster {
	return sharding.NewRoster(i.client, sharding.RosterConfig{Namespace: i.namespace, TTL: cluster.RosterTTL})
}

// Now is Redis' time, by which everything is due.
func (i *Inspector) Now(ctx context.Context) (time.Time, error) {
	l, err := i.open(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now, _, err := l.Time(ctx)
	return now, err
}

// Jobs lists all jobs by name. Jobs that this version cannot read are left out and named in the
// error, which then wraps ErrForeign and comes beside the others; and so does an UnheardError.
// It returns ErrUnknownNamespace when no node has ever run there.
func (i *Inspector) Jobs(ctx context.Context) ([]JobView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.Jobs(ctx)
	left, err := beside(err)
	if err != nil {
		return nil, err
	}
	views, err := i.jobViews(ctx, l, all, all)
	if views == nil {
		return nil, err
	}
	return views, errors.Join(err, left)
}

// jobViews returns the views that could be made, and errors.Join of what is wrong with the others.
func (i *Inspector) jobViews(ctx context.Context, l *ledger.Ledger, shown, all []ledger.Stored) ([]JobView, error) {
	now, _, err := l.Time(ctx)
	if err != nil {
		return nil, err
	}
	held, err := i.held(ctx, all)
	if err != nil {
		return nil, err
	}
	var paused []string
	for _, s := range shown {
		if s.Pause.Holds(now.UnixMilli()) {
			paused = append(paused, s.Job)
		}
	}
	pauses, err := l.Pauses(ctx, paused...)
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
	return views, errors.Join(append(unread, lastFollowed(ctx, l, views))...)
}

// lastFollowed reads the last ticks of jobs that follow others: they have no cursor, only a history.
func lastFollowed(ctx context.Context, l *ledger.Ledger, views []JobView) error {
	var names []string
	for _, v := range views {
		if v.After != "" && v.Last == nil {
			names = append(names, v.Name)
		}
	}
	last, unread := make(map[string]int64), []error(nil)
	err := l.EachHistory(ctx, names, "", func(h ledger.JobRows) bool {
		last[h.Job], unread = lastOf(h.Rows), append(unread, historyError(h.Job, h.Err))
		return true
	})
	for k, v := range views {
		if v.After != "" && v.Last == nil {
			views[k].Last = stampOf(last[v.Name])
		}
	}
	return errors.Join(append(unread, err)...)
}

// unanswered says of an error that Redis gave no answer, rather than one that is none.
func unanswered(err error) bool {
	return errors.Is(err, locking.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func historyError(name string, err error) error {
	if err == nil || unanswered(err) {
		return err
	}
	return fmt.Errorf("history of job %s: %w; `ledger verify` names what is wrong", name, err)
}

// Job reads one job. It returns ErrUnknownJob when there is none of that name, and an error that
// wraps ErrForeign for one that this version cannot read. Beside an UnheardError stands the job,
// and its owner may be another one: who goes first for a job depends on all of them.
func (i *Inspector) Job(ctx context.Context, name string) (JobView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return JobView{}, err
	}
	s, err := l.Job(ctx, name)
	if err != nil {
		return JobView{}, err
	}
	rows, foreign, err := l.History(ctx, []string{name})
	if err != nil {
		return JobView{}, historyError(name, err)
	}
	all, err := l.Jobs(ctx)
	left, err := beside(err)
	if err != nil {
		return JobView{}, err
	}
	views, err := i.jobViews(ctx, l, []ledger.Stored{s}, all)
	if err != nil {
		return JobView{}, err
	}
	if trimmed(s.Entry, rows[name], foreign) {
		views[0].TrimmedTo = views[0].HistoryFrom
	}
	views[0].LeftAlone = foreign
	return views[0], left
}

// holding says who holds a job.
type holding struct {
	owner  string // the living node that goes first, "" when none can run the job
	orphan bool   // no living node of its generation holds it, in whatever definition, that is not on standby
	// Living nodes that hold another definition.
	superseded, standby []string
}

// held takes all jobs there are: who goes first for one depends on the others.
func (i *Inspector) held(ctx context.Context, all []ledger.Stored) (map[string]holding, error) {
	around, members, _, err := cluster.LookAround(ctx, i.roster())
	if err != nil {
		return nil, err
	}
	c, _ := around.Awake(members)
	held := make(map[string]holding, len(all))
	var list []*work.Job
	for _, s := range all {
		h := holding{orphan: !c.Knows(s.Job)}
		if d, err := jobs.ParseDefinition(s.Definition); err == nil { // else jobView says what is wrong with it
			list = append(list, &work.Job{Job: d.Job(), Digest: s.Digest})
			h.superseded, h.standby = otherHolders(around, members, s.Job, s.Digest, d.Generation)
			holders := c.Digests(s.Job)
			h.orphan = h.orphan || holders != nil && !slices.Contains(holders, s.Digest) && len(h.superseded) == 0
		}
		held[s.Job] = h
	}
	for j, first := range c.Firsts(list) {
		h := held[j.Name]
		h.owner = first.Name
		held[j.Name] = h
	}
	return held, nil
}

// crowd reads the living nodes and what they hold, but for those on standby: they can neither run nor register what they
// hold. unclear counts the nodes of which that cannot be read.
func (i *Inspector) crowd(ctx context.Context) (c *cluster.Crowd, unclear int, err error) {
	c, members, unclear, err := cluster.LookAround(ctx, i.roster())
	if err != nil {
		return nil, 0, err
	}
	some, more := c.Awake(members)
	return some, unclear + more, nil
}
