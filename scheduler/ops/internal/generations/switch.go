package generations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// switchAll switches jobs, in batches by partition.
func (p *promoter) switchAll(ctx context.Context, goals []*goal) error {
	names := make([]string, len(goals))
	for i, g := range goals {
		names[i] = g.job
	}
	if err := p.known.load(ctx, names); err != nil {
		return p.failed(err)
	}
	slices.SortStableFunc(goals, func(a, b *goal) int { return cmp.Compare(p.l.Partition(a.job), p.l.Partition(b.job)) })
	for batch := range work.Batches(goals, ledger.BatchMax, func(g *goal) int { return p.l.Partition(g.job) }) {
		if err := p.switchSome(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// switchSome switches jobs of one partition. A job that changes meanwhile is tried again from the
// state in the answer. The next round finds the jobs that are left after all tries.
func (p *promoter) switchSome(ctx context.Context, goals []*goal) error {
	var left []*goal
	for _, g := range goals {
		if err := p.plan(g); err != nil {
			p.unreadable[g.job] = true // a newer version's schedule
			continue
		}
		left = append(left, g)
	}
	var clockErr error // error of the last try
	for try := 0; len(left) > 0 && try < 2*cluster.Rounds; try++ {
		now, err := p.l.Now(ctx)
		if err != nil {
			return err
		}
		now = now.Truncate(time.Millisecond)
		defs := make([]define.Definition, len(left))
		for i, g := range left {
			defs[i] = g.request.At(now)
		}
		answers, err := define.Switch(ctx, p.l, now.UnixMilli(), p.p.Epoch, defs)
		if clockErr = err; errors.Is(err, ledger.ErrClock) {
			continue
		}
		if err != nil {
			return p.failed(err)
		}
		asked := left
		left = nil
		for i, g := range asked {
			again, err := p.took(g, answers[i])
			if err != nil {
				return err
			}
			if again {
				g.request.Last = answers[i].Last
				left = append(left, g)
			}
		}
	}
	if clockErr != nil { // the masters' clocks differ, or Redis answers very late
		return p.failed(fmt.Errorf("%w; promote it again, from nearer to Redis if that answers late", clockErr))
	}
	return nil
}

// plan makes a goal's request to the ledger.
func (p *promoter) plan(g *goal) error {
	d := define.Definition{Job: g.job, Generation: p.p.Generation}
	def := relabelled(p.known.defs[g.job], p.p.Generation)
	if g.want != nil {
		def, d.Revision = g.want.def, g.want.Revision
	} else {
		d.Revision = g.stored.Revision
	}
	j := def.Job
	schedule, err := j.ParsedSchedule()
	if err != nil {
		return err
	}
	if schedule == nil && len(def.After) == 0 {
		return errors.New("no schedule")
	}
	if g.want == nil { // else it is stored already
		if d.Text, err = json.Marshal(def); err != nil {
			return err
		}
	}
	d.Digest = def.Digest()
	g.request = &cluster.Registration{Job: &work.Job{Job: j, Schedule: schedule, Def: def, Digest: d.Digest}, Def: d}
	if g.stored == nil {
		return nil
	}
	g.request.Last = g.stored.Last
	return g.request.Replaces(p.known.defs[g.job], g.stored.Digest, g.stored.Cursor)
}

// took notes the answer for one job, and reports whether to try again.
func (p *promoter) took(g *goal, got define.Defined) (again bool, err error) {
	switch got.Status {
	case "created":
		p.out.Created = append(p.out.Created, g.job)
		delete(p.fresh, g.job)
	case "replaced":
		delete(p.fresh, g.job) // no generation had it, but another one's nodes were quicker
		if g.want == nil {
			p.out.Orphaned = append(p.out.Orphaned, g.job)
		} else {
			p.out.Switched = append(p.out.Switched, g.job)
		}
	case "same", "missing": // missing: its announcement has expired, which the next round sees
	case "standby":
		return false, define.Outdated(p.p)
	case "differs":
		if g.stored == nil || got.Digest != g.request.Def.WasDigest {
			return false, nil // another definition than was read: the next round reads again
		}
		return g.request.Replaces(p.known.defs[g.job], got.Digest, got.Cursor) == nil, nil
	default:
		p.unreadable[g.job] = true
	}
	return false, nil
}

// follow updates the lists of followers of the upstreams, both current and former.
func (p *promoter) follow(ctx context.Context) error {
	ours := p.ours()
	if err := p.known.load(ctx, ours); err != nil {
		return p.failed(err)
	}
	for _, job := range ours {
		after := p.known.defs[job].After
		for _, before := range p.followed(job, after) {
			if err := follow.Unfollow(ctx, p.l, p.p.Epoch, before, job); err != nil {
				return err
			}
		}
		for _, upstream := range after {
			if err := follow.Follow(ctx, p.l, p.p.Epoch, upstream, job); err != nil && (!errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrClosed)) {
				return err // refused: too many followers; the nodes log it when they register the job
			}
		}
	}
	return nil
}

// ours are the jobs that match and that the generation runs now.
func (p *promoter) ours() (names []string) {
	for _, s := range p.known.stored {
		if its, _ := p.known.runs(p.p.Generation, s.Job); its && p.matches(s.Job) {
			names = append(names, s.Job)
		}
	}
	return names
}

// followed are the jobs that a job follows in other generations only.
func (p *promoter) followed(job string, after []string) (before []string) {
	for name, g := range p.known.of {
		if a := g.kept[job]; name != p.p.Generation && a != nil {
			before = append(before, a.def.After...)
		}
	}
	before = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
	slices.Sort(before)
	return slices.Compact(before)
}

// cancel cancels runs, on living nodes of other generations, of the jobs that the generation runs
// now.
func (p *promoter) cancel(ctx context.Context) error {
	if !p.o.CancelRunning {
		return nil
	}
	ours := p.ours()
	open, err := query.InFlight(ctx, p.l, ours...)
	if err != nil {
		return err
	}
	for _, l := range open {
		_, its := slices.BinarySearch(ours, l.Job)
		others := slices.ContainsFunc(p.known.members, func(m roster.Member) bool { return m.ID == l.Node && m.Generation != p.p.Generation })
		if l.Token == 0 || !its || !others {
			continue
		}
		word, err := operate.Cancel(ctx, p.l, l.Job, l.ID, p.o.Author, "promotion of "+quoted(p.p.Generation))
		switch {
		case errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed), errors.Is(err, ledger.ErrUnknownRun):
			continue // it has ended meanwhile
		case err != nil:
			return err
		case word == operate.Flagged || word == operate.Cancelled:
			p.out.Cancelled++
		}
	}
	return nil
}
