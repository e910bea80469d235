//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// rollbackWithin is how long after the last node of a newer version has left all older ones claim again at the latest:
// they look every five seconds. Until then those that have looked already do it for them, late by the grace.
const rollbackWithin = 6 * time.Second

func deploySettings(r *rehearsal) settings {
	s := usual(r)
	s.jobs, s.posts = versionJobs(0), true
	return s
}

// writeTerms writes the configurations.
func (s *stage) writeTerms() error {
	for _, v := range deploys {
		c := s.settings
		c.jobs, c.label, c.node = versionJobs(v.of), v.name, map[string]any{"revision": v.revision}
		if err := c.writeConfig(filepath.Join(s.dir, v.name+".yaml"), s.sink(), s.lives()); err != nil {
			return err
		}
		s.terms = append(s.terms, term{name: v.name, jobs: c.jobs, back: v.back})
	}
	return nil
}

// deploy rolls three versions over the nodes, one after another without a pause, and then the second of them again.
func deploy(ctx context.Context, r *rehearsal, s *stage) error {
	if err := s.writeTerms(); err != nil {
		return err
	}
	nodes := max(r.nodes, 3)
	if !r.short {
		nodes = max(r.nodes, 4)
	}
	if err := s.joinAll(ctx, s.terms[0].name, nodes); err != nil {
		return err
	}
	s.from = time.Unix(time.Now().Unix()+1, 0).UTC()
	s.terms[0].switched = window{s.begun, s.from}
	if err := waitUntil(ctx, s.from.Add(time.Second)); err != nil {
		return err
	}
	const again = "old1" // an old node that is started amid the third deploy
	for i := 1; i < len(s.terms); i++ {
		var amid func() error
		if s.terms[i].name == "d" {
			amid = func() error {
				s.say("an old node is started again, with the configuration of b")
				return s.join(ctx, again, "b")
			}
		}
		if err := s.roll(ctx, nodes, s.terms[i-1], &s.terms[i], amid); err != nil {
			return err
		}
		if n, err := s.node(again); err == nil && n.left.IsZero() {
			if err := s.leave(n); err != nil {
				return err
			}
		}
	}
	if err := s.rolledBack(ctx, &s.terms[len(s.terms)-1]); err != nil {
		return err
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	for _, j := range s.jobs {
		s.findings = append(s.findings, succession(j.name, s.terms, map[string]string{again: "b"}, s.lines)...)
	}
	s.deploysNoted()
	return s.told(s.terms[1], s.terms[3], again)
}

// join starts a node with a configuration and returns when it is ready.
func (s *stage) join(ctx context.Context, name, config string) error {
	n, err := s.start(name, "--config", config+".yaml")
	if err == nil {
		err = n.ready(ctx)
	}
	return err
}

// joinAll starts nodes of a version at once and returns when all are ready.
func (s *stage) joinAll(ctx context.Context, version string, count int) error {
	for i := range count {
		if _, err := s.start(fmt.Sprintf("%s%d", version, i+1), "--config", version+".yaml"); err != nil {
			return err
		}
	}
	for _, n := range s.nodes[len(s.nodes)-count:] {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// roll replaces the nodes one by one; each mixture of them sees the load of a second. amid is called half way.
func (s *stage) roll(ctx context.Context, nodes int, from term, to *term, amid func() error) error {
	s.say("from %s to %s", from.name, to.name)
	to.switched.from = time.Now()
	var old *node
	for i := range nodes {
		var err error
		if old, err = s.node(fmt.Sprintf("%s%d", from.name, i+1)); err != nil {
			return err
		}
		if to.back && i == nodes-1 {
			to.switched.from = time.Now()
		}
		if err := s.leave(old); err != nil {
			return err
		}
		if err := s.join(ctx, fmt.Sprint(to.name, i+1), to.name); err != nil {
			return err
		}
		if amid != nil && i == nodes/2 {
			if err := amid(); err != nil {
				return err
			}
		}
		if err := s.amid(ctx); err != nil {
			return err
		}
	}
	for i := range nodes {
		old, err := s.node(fmt.Sprintf("%s%d", from.name, i+1))
		if err == nil {
			err = old.gone(ctx)
		}
		if err != nil {
			return err
		}
	}
	to.switched.to = time.Now()
	return nil
}

// rolledBack waits until a term's schedules are the stored ones again, and then until all nodes must have looked.
func (s *stage) rolledBack(ctx context.Context, t *term) error {
	outer := ctx
	ctx, cancel := context.WithDeadline(ctx, t.switched.to.Add(rollbackWithin))
	defer cancel()
	inspector, err := scheduler.NewInspector(s.client, namespace)
	if err != nil {
		return err
	}
	for {
		views, err := inspector.Jobs(ctx)
		if err == nil && !slices.ContainsFunc(views, func(v scheduler.JobView) bool { return v.Schedule != t.of(v.Name).schedule }) {
			break
		}
		if e := wait(ctx, 50*time.Millisecond); e != nil {
			return fmt.Errorf("%s after the last newer node had left, not all older schedules count again: %w", rollbackWithin, errors.Join(err, e))
		}
	}
	t.switched.to = time.Now()
	t.waits = window{t.switched.from, t.switched.from.Add(rollbackWithin)}
	newer := s.terms[len(s.terms)-2]
	for _, j := range t.jobs {
		if j.differs() != newer.of(j.name).differs() {
			s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: t.waits.from, Until: t.waits.to}, What: "rollback", Job: j.name})
		}
	}
	s.note("the older schedules counted again %s after the last newer node was told to leave, with no command", short(t.switched.to.Sub(t.switched.from)))
	return waitUntil(outer, t.waits.to.Add(500*time.Millisecond))
}

// told checks that a node with the configuration of old, which came amid the deploy of now, said once of each job that has
// another definition that it does not claim it, and nothing of others.
func (s *stage) told(old, now term, name string) error {
	n, err := s.node(name)
	if err != nil {
		return err
	}
	words := map[string]int{}
	for r := range n.records {
		if r.Message == "job is not claimed by this node" {
			words[r.Job]++
		}
	}
	for _, j := range old.jobs {
		want := 0
		if j.differs() != now.of(j.name).differs() {
			want = 1
		}
		if words[j.name] != want {
			s.accuse(backward, j.name, "%s said %d times, not %d, that it does not claim it", name, words[j.name], want)
		}
	}
	s.note("%s, of version %s, said of %d jobs that it does not claim them, once each", name, old.name, len(words))
	return nil
}

// deploysNoted notes how late runs were in each deploy, and what was superseded.
func (s *stage) deploysNoted() {
	for _, t := range s.terms[1:] {
		w := t.switched
		if t.back {
			w = t.waits
		}
		late := lags(starts(s.lines), func(l line) bool { return w.holds(l.tick) })
		gone := map[jobs.Outcome]int64{}
		for _, b := range s.books {
			for _, row := range b.Rows {
				if row.Ranged && w.holds(time.UnixMilli(row.At)) {
					gone[row.Outcome] += row.Count
				}
			}
		}
		s.note("to %s, %s long: %d runs, the latest %s after it was due; %d ticks superseded, %d skipped behind a late one",
			t.name, short(w.to.Sub(w.from)), len(late), short(quantile(late, 1)), gone[jobs.OutcomeSuperseded], gone[jobs.OutcomeSkipped])
	}
}
