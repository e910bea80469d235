//go:build unix

package main

import (
	"context"
	"errors"
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
	// movedPartitions is how many partitions the namespace has where it moves to; it had 16.
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
func move(ctx context.Context, r *rehearsal, s *stage) error {
	plain := s.settings
	plain.section = nil
	if err := plain.writeConfig(filepath.Join(s.dir, latecomer+".yaml"), s.sink(), s.lives()); err != nil {
		return err
	}
	if err := s.startAll(ctx, r.nodes, nil); err != nil {
		return err
	}
	m := relocation{stage: s, frozen: s.nodes[0]}
	calm := max(r.seconds/8, 2*time.Second)
	for _, step := range []func(context.Context) error{m.freeze, m.relocate, m.followed, m.thaw, m.comeLate} {
		if err := wait(ctx, calm); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return m.finish(ctx)
}

// relocation is what the scenario has done.
type relocation struct {
	*stage
	frozen       *node
	sealed, open answer // began is when the first try of the step did, ended when it was answered
}

// freeze stops a node amid its starts, and waits until its runs have been reaped.
func (m *relocation) freeze(ctx context.Context) error {
	if err := m.amid(ctx); err != nil {
		return err
	}
	if err := m.stage.freeze(m.frozen); err != nil {
		return err
	}
	return m.reaped(ctx, (*node).struck)
}

// relocate carries out the steps. Each is killed once, as soon as there is something to be seen of it, run again, and
// run once too often.
func (m *relocation) relocate(ctx context.Context) error {
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
			if err := m.stage.amid(ctx); err != nil {
				return err
			}
		}
		if i > 0 && i < len(steps)-1 { // the one after it comes too early
			if err := m.refused(ctx, fmt.Sprintf("move %s before %s", steps[i+1].name, step.name), m.command(steps[i+1].name)...); err != nil {
				return err
			}
		}
		began = time.Now()
		cut, err := m.cut(ctx, step.amid, m.command(step.name)...)
		if err != nil {
			return err
		}
		here, there := note(m.client), note(m.there)
		done, err := m.must(ctx, m.command(step.name)...)
		if err != nil {
			return err
		}
		if _, err := m.must(ctx, m.command(step.name)...); err != nil {
			return fmt.Errorf("once too often: %w", err)
		}
		if step.after != nil {
			*step.after = answer{began: cut.began, ended: done.ended}
		}
		m.note("%s: SIGKILL %s after its start (%s) left %q here and %q there; repeated, it took %s", step.name, short(cut.ended.Sub(cut.began)), cut.how(),
			stateOf(here), stateOf(there), short(done.ended.Sub(done.began)))
	}
	m.say("moved; from seal to open %s", short(m.open.ended.Sub(m.sealed.began)))
	return nil
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
func (m *relocation) followed(ctx context.Context) error {
	for _, n := range m.nodes {
		if n != m.frozen {
			if err := m.arrived(ctx, n.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrived waits until a node is in the roster at the other side.
func (m *relocation) arrived(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	inspector, err := scheduler.NewInspector(m.there, namespace)
	if err != nil {
		return err
	}
	for {
		nodes, err := inspector.Nodes(ctx)
		if err == nil && slices.ContainsFunc(nodes, func(n scheduler.NodeView) bool { return n.Name == name && n.State == "active" }) {
			return nil
		}
		if e := wait(ctx, 50*time.Millisecond); e != nil {
			return fmt.Errorf("%s did not follow within %s: %w", name, followWithin, errors.Join(err, e))
		}
	}
}

// thaw lets the frozen node go on, which follows then.
func (m *relocation) thaw(ctx context.Context) error {
	if err := m.stage.thaw(m.frozen); err != nil {
		return err
	}
	thawed := m.frozen.frozen.Until
	err := m.arrived(ctx, m.frozen.name)
	m.note("%s was frozen until %s after the other side was open; it was there another %s later", m.frozen.name, short(thawed.Sub(m.open.ended)), short(time.Since(thawed)))
	return err
}

// comeLate starts a node where the namespace was, which knows of nowhere else.
func (m *relocation) comeLate(ctx context.Context) error {
	n, err := m.start(latecomer, "--config", latecomer+".yaml")
	if err != nil {
		return err
	}
	m.say("%s is started where the namespace was", latecomer)
	if err := wait(ctx, 4*time.Second); err != nil {
		return err
	}
	if !n.alive() {
		n.left = n.ended // it may
	}
	return nil
}

// finish stops the nodes and has it judged: the books of the other side, where the history was brought to.
func (m *relocation) finish(ctx context.Context) error {
	here := m.client
	m.client = m.there
	defer func() { m.client = here }()
	m.faults = append(m.faults, judge.Disturbance{Span: judge.Span{From: m.sealed.began, Until: m.open.ended}, What: "drain, and a move"})
	if err := m.stage.finish(ctx); err != nil {
		return err
	}
	left, err := readBooks(ctx, here, namespace)
	if err != nil {
		return err
	}
	m.findings = append(m.findings, left.kept(m.books)...)
	m.findings = append(m.findings, sealedOff(m.lines, m.books.started(), window{m.sealed.ended, m.open.began})...)
	m.astray()
	m.pauseNoted()
	return nil
}

// astray accuses nodes of runs that they were granted where the namespace was no more.
func (m *relocation) astray() {
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

// pauseNoted notes for how long nothing started, and how late runs were for that.
func (m *relocation) pauseNoted() {
	abandoned := m.books.abandoned()
	own := slices.DeleteFunc(starts(m.lines), func(l line) bool { return abandoned[l.run] })
	var last, first time.Time
	for _, l := range own {
		if l.at.Before(m.sealed.ended) && l.at.After(last) {
			last = l.at
		}
		if l.at.After(m.open.began) && (first.IsZero() || l.at.Before(first)) {
			first = l.at
		}
	}
	late := lags(own, func(l line) bool { return l.lag() > startsWithin })
	m.note("from seal to open %s; nothing started for %s; %d runs started more than %s after they were due, the latest %s",
		short(m.open.ended.Sub(m.sealed.began)), short(first.Sub(last)), len(late), short(startsWithin), short(quantile(late, 1)))
}
