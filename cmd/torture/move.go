//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// movedPartitions is how many partitions the namespace has where it moves to; it had one.
	movedPartitions = 7
	// followWithin is how long nodes may take to follow: they look every second, end there and start anew.
	followWithin = 15 * time.Second
	// latecomer is the node that is started where the namespace was, and told of nothing else.
	latecomer = "late"
)

func moveSettings(r *rehearsal) settings {
	s := promoteSettings(r)
	s.next = true
	return s
}

// move moves the namespace from a standalone server to a Cluster, with a SIGKILL to the command amid each step.
func move(ctx context.Context, r *rehearsal, s *stage) {
	plain := s.settings
	plain.section = nil
	s.check(plain.writeConfig(filepath.Join(s.dir, latecomer+".yaml"), s.sink(), s.lives()))
	s.startAll(ctx, r.nodes)
	m := relocation{stage: s, frozen: s.nodes[0]}
	calm := max(r.seconds/8, 2*time.Second)
	for _, step := range []func(context.Context){m.freeze, m.relocate, m.followed, m.thaw, m.comeLate} {
		s.check(wait(ctx, calm))
		step(ctx)
	}
	m.finish(ctx)
}

// relocation is what the scenario has done.
type relocation struct {
	*stage
	frozen       *node
	sealed, open answer // began is when the first try of the step did, ended when it was answered
}

// freeze stops a node amid its starts, and waits until its runs have been reaped.
func (m *relocation) freeze(ctx context.Context) {
	m.amid(ctx)
	m.stage.freeze(m.frozen)
	m.reaped(ctx, (*node).struck)
}

// relocate carries out the steps. Each is killed once, as soon as there is something to be seen of it, run again, and
// run once too often.
func (m *relocation) relocate(ctx context.Context) {
	note := func(c redis.UniversalClient) string { return c.HGet(ctx, "{"+namespace+"}:control", "move").Val() }
	began := time.Now()
	steps := []struct {
		name  string
		amid  func(context.Context) bool
		after *answer
	}{
		{"plan", func(context.Context) bool { return time.Since(began) > 50*time.Millisecond }, nil},
		{"seal", func(context.Context) bool { return note(m.client) != "" }, &m.sealed},
		{"copy", m.copying, nil},
		{"open", func(context.Context) bool { return strings.Contains(note(m.there), "open") }, &m.open},
	}
	for i, step := range steps {
		if step.name == "seal" {
			m.amid(ctx)
		}
		if i > 0 && i < len(steps)-1 { // the one after it comes too early
			m.refused(ctx, fmt.Sprintf("move %s before %s", steps[i+1].name, step.name), m.command(steps[i+1].name)...)
		}
		began = time.Now()
		cut := m.cut(ctx, step.amid, m.command(step.name)...)
		here, there := note(m.client), note(m.there)
		done := m.must(ctx, m.command(step.name)...)
		m.must(ctx, m.command(step.name)...) // once too often
		if step.after != nil {
			*step.after = answer{began: cut.began, ended: done.ended}
		}
		m.note("%s: SIGKILL %s after its start (%s) left %q here and %q there; repeated, it took %s", step.name, short(cut.ended.Sub(cut.began)), cut.how(),
			stateOf(here), stateOf(there), short(done.ended.Sub(done.began)))
	}
	m.say("moved; from seal to open %s", short(m.open.ended.Sub(m.sealed.began)))
}

// stateOf is the state of a move in a control record.
func stateOf(note string) string {
	f := strings.Split(note, "|")
	if len(f) < 4 {
		return note
	}
	return f[2] + "/" + f[3]
}

// copying says whether some job has arrived at the other side.
func (m *relocation) copying(ctx context.Context) bool {
	for p := range movedPartitions {
		if m.there.Exists(ctx, fmt.Sprintf("{%s:%d}:jobs", namespace, p)).Val() > 0 {
			return true
		}
	}
	return false
}

func (m *relocation) command(step string) []string {
	return []string{"move", step, "--from", "redis://" + m.redis.Addr(), "--to", m.nextURL(), "--partitions", fmt.Sprint(movedPartitions)}
}

// followed waits until every node but the frozen one is at the other side.
func (m *relocation) followed(ctx context.Context) {
	for _, n := range m.nodes {
		if n != m.frozen {
			m.arrived(ctx, n.name)
		}
	}
}

// arrived waits until a node is in the roster at the other side.
func (m *relocation) arrived(ctx context.Context, name string) {
	m.eventually(ctx, followWithin, name+" does not follow", func(ctx context.Context) (bool, error) {
		nodes, err := m.ops(m.there).Nodes(ctx)
		return slices.ContainsFunc(nodes, func(n scheduler.NodeView) bool { return n.Name == name && n.State == "active" }), err
	})
}

// thaw lets the frozen node go on, which follows then.
func (m *relocation) thaw(ctx context.Context) {
	m.stage.thaw(m.frozen)
	thawed := m.frozen.frozen.Until
	m.arrived(ctx, m.frozen.name)
	m.note("%s was frozen until %s after the other side was open; it was there another %s later", m.frozen.name, short(thawed.Sub(m.open.ended)), short(time.Since(thawed)))
}

// comeLate starts a node where the namespace was, which knows of nowhere else.
func (m *relocation) comeLate(ctx context.Context) {
	n := m.start(latecomer, "--config", latecomer+".yaml")
	m.say("%s is started where the namespace was", latecomer)
	m.check(wait(ctx, 4*time.Second))
	if !n.alive() {
		n.left = n.ended // it may
	}
}

// finish stops the nodes and has it judged: the books of the other side, where the history was brought to.
func (m *relocation) finish(ctx context.Context) {
	here := m.client
	m.client = m.there
	defer func() { m.client = here }()
	m.faults = append(m.faults, judge.Disturbance{Span: judge.Span{From: m.sealed.began, Until: m.open.ended}, What: "drain, and a move"})
	m.stage.finish(ctx)
	left, err := readBooks(ctx, here, namespace)
	m.check(err)
	m.findings = append(m.findings, left.kept(m.books)...)
	m.findings = append(m.findings, sealedOff(m.lines, m.books.started(), window{m.sealed.ended, m.open.began})...)
	m.checkStrays()
}

// checkStrays accuses nodes of runs that they were granted where the namespace was no more.
func (m *relocation) checkStrays() {
	after := map[string]int{}
	for _, l := range starts(m.lines) {
		if l.tick.After(m.open.ended) {
			after[l.node]++
		}
		if l.node == latecomer {
			m.accuse(stray, l.job, "a node that knows only the old address ran: %s", l)
		}
	}
	for _, n := range m.nodes {
		if n.name != latecomer && after[n.name] == 0 {
			m.accuse(stray, n.name, "it ran nothing where the namespace is now")
		}
	}
	m.note("%s ran %d times after it had followed; %s, with the old address alone, %d times", m.frozen.name, after[m.frozen.name], latecomer, after[latecomer])
}
