package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/space"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// Examine finds the problems of a namespace and its Redis. It returns an error only when Redis does
// not answer.
func Examine(ctx context.Context, c *space.Conn) ([]Problem, error) {
	l, err := c.Open(ctx)
	if errors.Is(err, locking.ErrUnreachable) && !errors.Is(err, ledger.ErrNoNamespace) {
		return nil, err
	}
	var found list
	examineServers(ctx, c.Client, c.Namespace, &found) // first: a server is the cause of much that is found below
	err = namespaceProblems(ctx, c, l, err, &found)
	if errors.Is(err, locking.ErrUnreachable) {
		return nil, err
	}
	if err != nil {
		found.add(Problem{
			Code: "namespace_not_looked_at", Severity: Error, Kind: onNamespace, On: c.Namespace, Text: "jobs and nodes could not be looked at: " + err.Error(),
			Cure: "see the other problems; mend what the error names",
		})
	}
	return found.problems(), nil
}

// doctor looks for problems of a namespace that is there.
type doctor struct {
	*space.Conn
	l   *ledger.Ledger
	now time.Time // by Redis' clock
	to  *list
}

func (d *doctor) add(code, severity, kind, on, text, cure string) {
	d.to.add(Problem{Code: code, Severity: severity, Kind: kind, On: on, Text: text, Cure: cure})
}

// lacking notes that some partitions could not be read, and returns any other error.
func (d *doctor) lacking(err error) error {
	if !errors.As(err, new(*ledger.UnreachableError)) {
		return err
	}
	d.add("partitions_unreachable", Error, onNamespace, d.Namespace, "some jobs could not be looked at: "+err.Error(), "start the masters that do not answer, or let replicas take over")
	return nil
}

// namespaceProblems looks at a namespace that was opened as l, or with the error err.
func namespaceProblems(ctx context.Context, c *space.Conn, l *ledger.Ledger, err error, to *list) error {
	if errors.Is(err, ledger.ErrNoNamespace) {
		p := Problem{
			Code: "namespace_unknown", Severity: Error, Kind: onNamespace, On: c.Namespace, Text: "no node has ever run in this namespace here",
			Cure: "check --redis and --namespace; else start a node",
		}
		if to.has("redis_replica") {
			p.Text, p.Cure = "it is not on this replica", "look at the master, which may have it; a replica that has just started gets it when it is in sync"
		}
		to.add(p)
		return nil
	}
	if err != nil {
		return err
	}
	d := &doctor{Conn: c, l: l, to: to}
	if d.now, err = l.Now(ctx); err != nil {
		return err
	}
	closed, err := c.Closed(ctx)
	if err != nil {
		return err
	}
	if closed != "" {
		d.add("namespace_closed", Error, onNamespace, c.Namespace, closed,
			"use the Redis where the namespace is now; `move status` says how far the move is, `move abort` undoes one that has not opened the other side")
	}
	nodes, err := d.nodes(ctx)
	if err != nil {
		return err
	}
	if closed == "" {
		d.living(nodes)
		if err := d.jobs(ctx, len(nodes) > 0); err != nil {
			return err
		}
		if err := d.promotion(ctx); err != nil {
			return err
		}
	}
	return d.keys(ctx)
}

// promotion looks for a promotion that has begun and not ended.
func (d *doctor) promotion(ctx context.Context) error {
	control, err := d.l.Control(ctx)
	if err != nil {
		return err
	}
	if p, ok := ledger.PromotionOf(control.Promoting); ok {
		again := "generations promote " + p.Generation
		if p.Pattern != "" {
			again += " --job '" + p.Pattern + "'"
		}
		d.add("promotion_half_done", Error, onGeneration, p.Generation, "its promotion has begun and not ended: some jobs may still run as another generation has them",
			"when it is not under way just now, run `"+again+"` again")
	}
	return nil
}

// at is an instant in words, of ms.
func at(ms int64) string { return wire.Time(time.UnixMilli(ms)) }

// keys looks for keys that this version does not know.
func (d *doctor) keys(ctx context.Context) error {
	unknown, err := query.UnknownKeys(ctx, d.l)
	if err = d.lacking(err); err != nil {
		return err
	}
	for _, u := range unknown {
		d.add("key_unknown", Warning, onKey, u.Key, u.What, "if no newer version has written it, find out what did; Escapement leaves it alone")
	}
	return nil
}

const (
	// overdueAfter is how late a tick must be to count as unclaimed: a node takes a late tick
	// within seconds.
	overdueAfter = time.Minute
	// pausedLong is how long a job may be paused before a warning that it may be forgotten.
	pausedLong = 7 * 24 * time.Hour
)

// jobs looks at all jobs.
func (d *doctor) jobs(ctx context.Context, living bool) error {
	stored, err := query.Jobs(ctx, d.l)
	whole := err == nil
	if err = d.lacking(err); err != nil {
		return err
	}
	catalog, err := catalog.Names(ctx, d.l)
	if err != nil {
		return err
	}
	held, err := inspect.Holders(ctx, d.l, d.Roster(), inspect.Page{Jobs: stored, Whole: true})
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(stored))
	for _, s := range stored {
		there[s.Job] = true
	}
	var paused []query.Stored
	var waiting, entering []string
	for _, s := range stored {
		definition, err := jobs.ParseDefinition(s.Definition)
		if s.Err != nil || err != nil {
			d.add("job_unreadable", Warning, onJob, s.Job, "this version cannot read it: "+errors.Join(s.Err, err).Error(), "use the version that runs it; `ledger verify` names the record")
			continue
		}
		d.named(definition, catalog[s.Job], held[s.Job])
		if whole {
			d.upstreams(definition, there)
		}
		d.ahead(s, definition)
		if definition.Guard != "" || definition.Limit.Group != "" {
			entering = append(entering, s.Job)
		}
		switch {
		case s.Pause.Holds(d.now.UnixMilli()):
			if s.Pause.To != 0 || d.now.Sub(time.UnixMilli(s.Pause.From)) > pausedLong {
				paused = append(paused, s)
			}
		case living && held[s.Job].NoNode != "":
			d.noNode(s, definition, held[s.Job])
		case living && s.Cursor != 0 && s.HolderRun == "" && d.now.Sub(time.UnixMilli(s.Cursor)) > overdueAfter:
			d.add("job_overdue", Error, onJob, s.Job, "its tick of "+at(s.Cursor)+" is due, a node can run it, and nobody does",
				"see what the nodes say: `nodes list`, /readyz and the log of "+held[s.Job].Owner+"; are their slots taken (node.max_running)?")
		case s.Cursor != 0 && s.HolderRun != "" && d.now.Sub(time.UnixMilli(s.Cursor)) > overdueAfter:
			waiting = append(waiting, s.Job)
		}
	}
	return errors.Join(d.paused(ctx, paused), d.waiting(ctx, waiting), d.refusedEntry(ctx, entering))
}

// named notes a job of a program and a stored one, of some version, that have one name.
func (d *doctor) named(definition jobs.Definition, version int64, h inspect.Holding) {
	cure := fmt.Sprintf("rename one of them, or `jobs delete %s`", definition.Name)
	switch {
	case version == 0:
	case definition.Stored == 0:
		d.add("job_name_twice", Warning, onJob, definition.Name, "a stored job has the name of this job of a program, and does not run", cure)
	case definition.Stored == version && len(h.Superseded) > 0: // they hold no other version, for they learn of the latest one at once
		d.add("job_name_twice", Warning, onJob, definition.Name, "programs have a job with the name of this stored one, which does not run: on "+someOf(h.Superseded), cure)
	}
}

// upstreams notes that a job follows an unknown job.
func (d *doctor) upstreams(definition jobs.Definition, there map[string]bool) {
	for _, name := range definition.After {
		if !there[name] {
			d.add("job_no_upstream", Error, onJob, definition.Name, fmt.Sprintf("it follows the job %s, which is not there: it does not run", name), "add that job, or take it out of `after`")
		}
	}
}

// noNode notes a job that no living node can run. It is an error when its next tick is due, or may
// come at any time because it follows another job.
func (d *doctor) noNode(s query.Stored, definition jobs.Definition, h inspect.Holding) {
	severity, since := Warning, ""
	if s.Cursor != 0 && s.Cursor <= d.now.UnixMilli() {
		severity, since = Error, "; its tick of "+at(s.Cursor)+" is due"
	} else if len(definition.After) > 0 {
		severity = Error
	}
	cure := "start a node that has it, or `jobs delete` what nobody wants any more"
	switch {
	case len(h.Standby) > 0:
		cure = "start a node of its generation, or promote the one that is there (`generations list`)"
	case len(definition.Labels) > 0 && !h.Orphan:
		cure = fmt.Sprintf("start a node with the labels %s (node.labels), or change those of the job", labelWords(definition.Labels))
	}
	d.add("job_no_node", severity, onJob, s.Job, h.NoNode+since, cure)
}

// labelWords are labels as a configuration has them, by name: "disk: fast, zone: a".
func labelWords(labels map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+": "+labels[name])
	}
	return strings.Join(words, ", ")
}
