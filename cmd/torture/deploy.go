//go:build unix

package main

import (
	"context"
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
func (s *stage) writeTerms() {
	for _, v := range deploys {
		c := s.settings
		c.jobs, c.label, c.node = versionJobs(v.of), v.name, map[string]any{"revision": v.revision}
		s.check(c.writeConfig(filepath.Join(s.dir, v.name+".yaml"), s.sink(), s.lives()))
		s.terms = append(s.terms, term{name: v.name, jobs: c.jobs, back: v.back})
	}
}

// deploy rolls three versions over the nodes, one after another without a pause, and then the second of them again.
func deploy(ctx context.Context, r *rehearsal, s *stage) {
	s.writeTerms()
	nodes := max(r.nodes, 3)
	if !r.short {
		nodes = max(r.nodes, 4)
	}
	s.joinAll(ctx, s.terms[0].name, nodes)
	s.terms[0].switched = window{s.begun, s.from}
	s.check(waitUntil(ctx, s.from.Add(time.Second)))
	const again = "old1" // an old node that is started amid the third deploy
	for i := 1; i < len(s.terms); i++ {
		amid := func() {}
		if s.terms[i].name == "d" {
			amid = func() {
				s.say("an old node is started again, with the configuration of b")
				s.join(ctx, again, "b")
			}
		}
		s.roll(ctx, nodes, s.terms[i-1], &s.terms[i], amid)
		for _, n := range s.named(again) {
			s.leave(n)
		}
	}
	s.rolledBack(ctx, &s.terms[len(s.terms)-1])
	s.finish(ctx)
	for _, j := range s.jobs {
		s.findings = append(s.findings, succession(j.name, s.terms, map[string]string{again: "b"}, s.lines)...)
	}
	s.deploysNoted()
	s.told(s.terms[1], s.terms[3], again)
}

// join starts a node with a configuration and returns when it is ready.
func (s *stage) join(ctx context.Context, name, config string) {
	s.ready(ctx, []*node{s.start(name, "--config", config+".yaml")})
}

// joinAll starts nodes of a version at once and returns when all are ready.
func (s *stage) joinAll(ctx context.Context, version string, count int) {
	for i := range count {
		s.start(fmt.Sprint(version, i+1), "--config", version+".yaml")
	}
	s.ready(ctx, s.named(version))
}

// roll replaces the nodes one by one; each mixture of them sees the load of a second. amid is called half way.
func (s *stage) roll(ctx context.Context, nodes int, from term, to *term, amid func()) {
	s.say("from %s to %s", from.name, to.name)
	to.switched.from = time.Now()
	for i := range nodes {
		if to.back && i == nodes-1 {
			to.switched.from = time.Now()
		}
		s.leave(s.node(fmt.Sprint(from.name, i+1)))
		s.join(ctx, fmt.Sprint(to.name, i+1), to.name)
		if i == nodes/2 {
			amid()
		}
		s.amid(ctx)
	}
	s.gone(ctx, s.named(from.name))
	to.switched.to = time.Now()
}

// rolledBack waits until a term's schedules are the stored ones again, and then until all nodes must have looked.
func (s *stage) rolledBack(ctx context.Context, t *term) {
	s.eventually(ctx, rollbackWithin, "not all older schedules count again", func(ctx context.Context) (bool, error) {
		views, err := s.ops(s.client).Jobs(ctx)
		return !slices.ContainsFunc(views, func(v scheduler.JobView) bool { return v.Schedule != t.of(v.Name).schedule }), err
	})
	t.switched.to = time.Now()
	t.waits = window{t.switched.from, t.switched.from.Add(rollbackWithin)}
	newer := s.terms[len(s.terms)-2]
	for _, j := range t.jobs {
		if j.differs() != newer.of(j.name).differs() {
			s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: t.waits.from, Until: t.waits.to}, What: "rollback", Job: j.name})
		}
	}
	s.note("the older schedules counted again %s after the last newer node was told to leave, with no command", short(t.switched.to.Sub(t.switched.from)))
	s.check(waitUntil(ctx, t.waits.to.Add(500*time.Millisecond)))
}

// told checks that a node with the configuration of old, which came amid the deploy of now, said once of each job that has
// another definition that it does not claim it, and nothing of others.
func (s *stage) told(old, now term, name string) {
	words := map[string]int{}
	for r := range s.node(name).records {
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
