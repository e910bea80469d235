//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// rollbackWithin is how long after the last node of a newer version has left all older ones claim again at the latest:
// they look every five seconds. Until then those that have looked already do it for them, late by the grace.
const rollbackWithin = 6 * time.Second

func deploySettings(r *rehearsal) settings {
	s := usual(r)
	s.jobs, s.posts = versionJobs(0), true
	return s
}

// writeVersions writes the configurations.
func (s *stage) writeVersions() ([]term, error) {
	var terms []term
	for _, v := range versions {
		c := s.settings
		c.jobs, c.label, c.node = versionJobs(v.of), v.name, map[string]any{"revision": v.revision}
		if err := c.writeConfig(filepath.Join(s.dir, v.name+".yaml"), s.sink(), s.lives()); err != nil {
			return nil, err
		}
		terms = append(terms, term{name: v.name, jobs: c.jobs, back: v.back})
	}
	return terms, nil
}

// deploy rolls three versions over the nodes, one after another without a pause, and then the second of them again.
func deploy(ctx context.Context, r *rehearsal, s *stage) error {
	terms, err := s.writeVersions()
	if err != nil {
		return err
	}
	nodes := max(r.nodes, 3)
	if !r.short {
		nodes = max(r.nodes, 4)
	}
	if err := s.joinAll(ctx, terms[0].name, nodes); err != nil {
		return err
	}
	s.from = time.Unix(time.Now().Unix()+1, 0).UTC()
	if err := waitUntil(ctx, s.from.Add(time.Second)); err != nil {
		return err
	}
	var again *node // an old one that is started amid the third deploy
	for i := 1; i < len(terms); i++ {
		var amid func() error
		if terms[i].name == "d" {
			amid = func() (err error) {
				s.say("an old node is started again, with the configuration of b")
				again, err = s.start("old1", "--config", "b.yaml")
				if err == nil {
					err = again.ready(ctx)
				}
				return err
			}
		}
		if err := s.roll(ctx, nodes, terms[i-1], &terms[i], amid); err != nil {
			return err
		}
		if amid != nil {
			if err := s.leave(again); err != nil {
				return err
			}
		}
	}
	if err := s.rolledBack(ctx, &terms[len(terms)-1]); err != nil {
		return err
	}
	return s.deployed(ctx, terms, map[string]string{"old1": "b"})
}

// join starts a node with a version's configuration and returns when it is ready.
func (s *stage) join(ctx context.Context, version string, i int) error {
	n, err := s.start(fmt.Sprintf("%s%d", version, i), "--config", version+".yaml")
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

// leave tells a node to end.
func (s *stage) leave(n *node) error {
	s.left[n.name] = true
	return n.signal(syscall.SIGTERM)
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
		if err := s.join(ctx, to.name, i+1); err != nil {
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
	s.note("the older schedules counted again %s after the last newer node was told to leave, with no command", short(t.switched.to.Sub(t.switched.from)))
	return waitUntil(outer, t.waits.to.Add(500*time.Millisecond))
}

// gone waits until the process has ended.
func (n *node) gone(ctx context.Context) error {
	select {
	case <-n.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s does not end: %w", n.name, ctx.Err())
	}
}

// deployed stops the nodes and checks what was in force when.
func (s *stage) deployed(ctx context.Context, terms []term, extra map[string]string) error {
	stopped, err := s.stop(ctx)
	if err != nil {
		return err
	}
	if err := s.gather(ctx); err != nil {
		return err
	}
	d := demand{within: startsWithin, switched: map[string][]window{}}
	for i, j := range s.jobs {
		now, switched, wrong := inForce(j.name, terms, s.books.Rows[j.name])
		s.jobs[i], d.switched[j.name] = now, switched
		s.findings.violations = append(s.findings.violations, wrong...)
		s.findings.violations = append(s.findings.violations, succession(j.name, terms, extra, s.lines)...)
	}
	s.judge(d, stopped)
	s.deploysNoted(terms)
	return s.told(terms[1], terms[3], "old1")
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
		if j.definition() != now.of(j.name).definition() {
			want = 1
		}
		if words[j.name] != want {
			s.accuse(backward, "%s said %d times, not %d, that it does not claim %s", name, words[j.name], want, j.name)
		}
	}
	s.note("%s, of version %s, said of %d jobs that it does not claim them, once each", name, old.name, len(words))
	return nil
}

// deploysNoted notes how late runs were in each deploy, and what was superseded.
func (s *stage) deploysNoted(terms []term) {
	for _, t := range terms[1:] {
		if t.back {
			t.switched = t.waits
		}
		ran, latest, when := 0, time.Duration(0), line{}
		for _, l := range starts(s.lines) {
			if t.switched.holds(l.tick) {
				if ran++; l.lag() > latest {
					latest, when = l.lag(), l
				}
			}
		}
		gone, skipped := 0, 0
		for id, why := range s.audit.absent {
			switch {
			case !t.switched.holds(time.Unix(id.second, 0)):
			case why == jobs.OutcomeSuperseded.String():
				gone++
			case why == jobs.OutcomeSkipped.String():
				skipped++
			}
		}
		s.note("to %s, %s long: %d runs, the latest %s after it was due (%s); %d ticks superseded, %d skipped behind a late one", t.name, short(t.switched.to.Sub(t.switched.from)), ran, short(latest), when.job, gone, skipped)
	}
}
