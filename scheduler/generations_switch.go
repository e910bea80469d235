package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// switchAll switches jobs, in batches by partition. What a batch replaces is kept beside before, for the way back.
func (p *promoter) switchAll(ctx context.Context, goals []*goal) error {
	slices.SortStableFunc(goals, func(a, b *goal) int { return cmp.Compare(p.l.Partition(a.job), p.l.Partition(b.job)) })
	for len(goals) > 0 {
		n := 1
		for n < len(goals) && n < ledger.BatchMax && p.l.Partition(goals[n].job) == p.l.Partition(goals[0].job) {
			n++
		}
		if err := p.save(ctx, goals[:n]); err != nil {
			return err
		}
		if err := p.switchSome(ctx, goals[:n]); err != nil {
			return err
		}
		goals = goals[n:]
	}
	return nil
}

// save keeps the stored definitions of jobs of one partition beside, each for its generation.
func (p *promoter) save(ctx context.Context, goals []*goal) error {
	batches := make(map[string][]ledger.Aside)
	for _, g := range goals {
		if g.stored == nil || p.known.borrowed(g.job, g.stored.Digest) {
			continue // it is kept as what it is
		}
		d := p.known.defs[g.job]
		a := ledger.Aside{Generation: d.Generation, Job: g.job, Digest: g.stored.Digest, Revision: g.stored.Revision, Text: g.stored.Definition}
		if was := p.known.aside[d.Generation][g.job]; was != nil {
			a.Was = was.Digest
		}
		batches[d.Generation] = append(batches[d.Generation], a)
	}
	for _, generation := range p.known.names {
		if batch := batches[generation]; len(batch) > 0 {
			place := fmt.Sprint(p.l.Partition(batch[0].Job), "|", generation)
			// An answer differs is a node's of that generation, which was quicker.
			if _, err := p.p.Shelve(ctx, p.l, generation, !p.swept[place], batch); err != nil {
				return fmt.Errorf("promote %s: %w", quoted(p.p.Generation), err)
			}
			p.swept[place] = true
		}
	}
	return nil
}

// switchSome switches jobs of one partition. A job that moves meanwhile is tried again as the answer shows it.
func (p *promoter) switchSome(ctx context.Context, goals []*goal) error {
	lasts := make(map[*cluster.Wish]int64)
	var wishes []*cluster.Wish
	var of []*goal // of wishes
	for _, g := range goals {
		w, err := p.wish(g)
		if err != nil {
			p.alone[g.job] = true // of a version that knows other schedules
			continue
		}
		if g.stored != nil {
			lasts[w] = g.stored.Last
		}
		wishes, of = append(wishes, w), append(of, g)
	}
	var astray error // of the last try
	for try := 0; len(wishes) > 0 && try < 2*cluster.Rounds; try++ {
		now, _, err := p.l.Time(ctx)
		if err != nil {
			return err
		}
		now = now.Truncate(time.Millisecond)
		defs := make([]ledger.Definition, len(wishes))
		for i, w := range wishes {
			defs[i] = w.At(now, lasts[w])
		}
		answers, err := p.l.Switch(ctx, now.UnixMilli(), p.p.Epoch, defs)
		if astray = err; errors.Is(err, ledger.ErrClock) {
			continue
		}
		if err != nil {
			return fmt.Errorf("promote %s: %w", quoted(p.p.Generation), err)
		}
		var left []*cluster.Wish
		var ofLeft []*goal
		for i, w := range wishes {
			again, err := p.took(w, of[i], answers[i])
			if err != nil {
				return err
			}
			if again {
				lasts[w] = answers[i].Last
				left, ofLeft = append(left, w), append(ofLeft, of[i])
			}
		}
		wishes, of = left, ofLeft
	}
	if astray != nil { // the masters' clocks differ, or Redis answers very late
		return fmt.Errorf("promote %s: %w; promote it again, from nearer to Redis if that answers late", quoted(p.p.Generation), astray)
	}
	return nil // what is left the next round finds
}

// wish is what a goal asks of the ledger.
func (p *promoter) wish(g *goal) (*cluster.Wish, error) {
	var def jobs.Definition
	var revision string
	if g.want != nil {
		def, revision = g.want.def, g.want.Revision
	} else {
		def, revision = relabelled(p.known.defs[g.job], p.p.Generation), g.stored.Revision
	}
	j, err := parsed(def)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(def)
	if err != nil {
		return nil, err
	}
	w := &cluster.Wish{Job: j, Def: ledger.Definition{Job: g.job, Digest: j.Digest, Revision: revision, Generation: p.p.Generation, Text: raw}}
	if g.stored == nil {
		return w, nil
	}
	return w, w.Replaces(p.known.defs[g.job], g.stored.Digest, g.stored.Cursor)
}

// countMade counts what the generation's nodes have created since this call began: once the gates are raised they may.
func (p *promoter) countMade() {
	for _, job := range slices.Sorted(maps.Keys(p.fresh)) {
		if now, ok := p.known.generationOf(job); ok && now == p.p.Generation {
			p.out.Created.add(job)
		}
	}
}

// took counts what became of one job, and says whether it is to be tried again as it now stands.
func (p *promoter) took(w *cluster.Wish, g *goal, got ledger.Defined) (again bool, err error) {
	name := w.Job.Name
	switch got.Word {
	case "created":
		p.out.Created.add(name)
		delete(p.fresh, name)
	case "replaced":
		delete(p.fresh, name) // nobody's before, but another generation's nodes were quicker
		if g.want == nil {
			p.out.Orphaned.add(name)
		} else {
			p.out.Switched.add(name)
		}
	case "same":
	case "standby":
		return false, p.p.Outdated()
	case "differs":
		if g.stored == nil || got.Digest != w.Def.WasDigest {
			return false, nil // another definition than was kept beside: the next round looks again
		}
		return w.Replaces(p.known.defs[name], got.Digest, got.Cursor) == nil, nil
	default:
		p.alone[name] = true
	}
	return false, nil
}

// follow tells the jobs that are followed now, and those that were before.
func (p *promoter) follow(ctx context.Context) error {
	for _, s := range p.known.stored {
		d, ok := p.known.defs[s.Job]
		if !ok || d.Generation != p.p.Generation || !p.matches(s.Job) {
			continue
		}
		for _, before := range p.followed(s.Job, d.After) {
			if err := p.p.Unfollow(ctx, p.l, before, s.Job); err != nil {
				return err
			}
		}
		if d.After == "" {
			continue
		}
		if err := p.p.Follow(ctx, p.l, d.After, s.Job); err != nil && (!errors.Is(err, ErrRefused) || errors.Is(err, ledger.ErrClosed)) {
			return err // refused: its followers are full, and its nodes say so when they register it
		}
	}
	return nil
}

// followed are the jobs that other generations have a job follow.
func (p *promoter) followed(job, after string) (before []string) {
	for _, generation := range p.known.names {
		a := p.known.aside[generation][job]
		if generation == p.p.Generation || a == nil || a.def.After == "" || a.def.After == after {
			continue
		}
		before = append(before, a.def.After)
	}
	slices.Sort(before)
	return slices.Compact(before)
}

// cancel ends what living nodes of other generations run of the jobs that are the generation's now.
func (p *promoter) cancel(ctx context.Context) error {
	if !p.o.CancelRunning {
		return nil
	}
	others := make(map[string]bool)
	for _, m := range p.known.members {
		others[m.ID] = m.Generation != p.p.Generation && m.State != sharding.StateGone
	}
	var names []string
	ours := make(map[string]bool)
	for _, s := range p.known.stored {
		if now, ok := p.known.generationOf(s.Job); ok && now == p.p.Generation && p.matches(s.Job) {
			names, ours[s.Job] = append(names, s.Job), true
		}
	}
	open, err := p.l.Open(ctx, names...)
	if err != nil {
		return err
	}
	for _, l := range open {
		if l.Token == 0 || !others[l.Node] || !ours[l.Job] {
			continue
		}
		word, err := p.l.Cancel(ctx, l.Job, l.Run, author(p.o.Author), "promotion of "+quoted(p.p.Generation))
		switch {
		case errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed), errors.Is(err, ledger.ErrUnknownRun):
			continue // it has ended meanwhile
		case err != nil:
			return err
		case word == ledger.Told || word == ledger.Cancelled:
			p.out.Cancelled++
		}
	}
	return nil
}
