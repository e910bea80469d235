//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The generations of the scenario, which begin the names of their nodes and stand in the lines that they write.
const (
	oldGeneration = "old"
	newGeneration = "new"
)

// cuts is how often a promotion is tried to be killed half way.
const cuts = 5

func promoteSettings(r *rehearsal) settings {
	s := usual(r)
	s.jobs, s.posts = append(everySecond(50), commands()...), true
	return s
}

// promote has two generations on one Redis, and makes the other one active again and again, once with a SIGKILL to the
// command. In the end a node of the one that was left comes back.
func promote(ctx context.Context, r *rehearsal, s *stage) error {
	for _, g := range []string{oldGeneration, newGeneration} {
		c := s.settings
		c.label, c.node = g, map[string]any{"generation": g}
		if err := c.writeConfig(filepath.Join(s.dir, g+".yaml"), s.sink(), s.lives()); err != nil {
			return err
		}
	}
	p := promotions{stage: s, reigns: []reign{{oldGeneration, window{from: time.Now()}}}, each: r.nodes, every: max(r.seconds/6, 2*time.Second)}
	for _, g := range []string{oldGeneration, newGeneration} {
		if err := s.joinAll(ctx, g, r.nodes); err != nil {
			return err
		}
	}
	s.from = time.Unix(time.Now().Unix()+1, 0).UTC()
	if err := wait(ctx, p.every); err != nil {
		return err
	}
	if err := p.standBy(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return p.to(ctx, newGeneration) },
		func(ctx context.Context) error { return p.to(ctx, oldGeneration) },
		p.cutShort,
		p.retire,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return p.finish(ctx)
}

// promotions are what the scenario has done.
type promotions struct {
	*stage
	reigns []reign // the last one goes on
	each   int     // nodes of each generation
	every  time.Duration
}

func (p *promotions) command(generation string) []string {
	return []string{"generations", "promote", generation, "--config", generation + ".yaml", "--redis", "redis://" + p.redis.Addr()}
}

// standBy checks that a generation that was never promoted has run nothing, and that one that nobody has is refused.
func (p *promotions) standBy(ctx context.Context) error {
	nobodys := append(p.command(newGeneration)[:2:2], "nobodys", "--redis", "redis://"+p.redis.Addr())
	if err := p.refused(ctx, "promote a generation that no node has", nobodys...); err != nil {
		return err
	}
	lines, _, err := readSink(p.sink())
	if err != nil {
		return err
	}
	wrong, _ := usurped(lines, nil, []reign{{oldGeneration, window{p.reigns[0].from, time.Now()}}})
	p.findings = append(p.findings, wrong...)
	return nil
}

// to promotes a generation amid the starts of a second.
func (p *promotions) to(ctx context.Context, generation string) error {
	if err := p.amid(ctx); err != nil {
		return err
	}
	a, err := p.must(ctx, p.command(generation)...)
	if err != nil {
		return err
	}
	p.succeed(generation, a.began, a.ended)
	p.say("%s is active; the command took %s", generation, short(a.ended.Sub(a.began)))
	return wait(ctx, p.every)
}

// succeed ends a reign and begins the next.
func (p *promotions) succeed(generation string, began, ended time.Time) {
	p.reigns[len(p.reigns)-1].window.to = ended
	p.reigns = append(p.reigns, reign{generation, window{from: began}})
}

// cutShort kills the command when the ledger says that the promotion goes on, and runs it again. If the command was done by
// then, the other generation is promoted back, and it is tried again.
func (p *promotions) cutShort(ctx context.Context) error {
	control := func(field string) string {
		return p.client.HGet(context.WithoutCancel(ctx), "{"+namespace+"}:control", field).Val()
	}
	going := func(context.Context) bool { return control("promoting") != "" }
	for try := 1; ; try++ {
		if err := p.amid(ctx); err != nil {
			return err
		}
		a, err := p.cut(ctx, going, p.command(newGeneration)...)
		if err != nil {
			return err
		}
		left := control("promoting")
		again, err := p.must(ctx, p.command(newGeneration)...)
		if err != nil {
			return err
		}
		p.succeed(newGeneration, a.began, again.ended)
		if left != "" {
			p.note("SIGKILL to the promoting command %s after its start left %q in the control record; repeated, it took %s", short(a.ended.Sub(a.began)), left, short(again.ended.Sub(again.began)))
			return wait(ctx, p.every)
		}
		if try == cuts {
			return fmt.Errorf("in %d tries no promotion was caught half way; of the last one, %s", cuts, a.how())
		}
		if err := wait(ctx, p.every); err != nil {
			return err
		}
		if err := p.to(ctx, oldGeneration); err != nil {
			return err
		}
	}
}

// retire ends the old nodes, and starts one of them again later.
func (p *promotions) retire(ctx context.Context) error {
	old := slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return !strings.HasPrefix(n.name, oldGeneration) })
	for _, n := range old {
		if err := p.leave(n); err != nil {
			return err
		}
	}
	for _, n := range old {
		if err := n.gone(ctx); err != nil {
			return err
		}
	}
	if err := wait(ctx, time.Second); err != nil {
		return err
	}
	if err := p.join(ctx, p.returned(), oldGeneration); err != nil {
		return err
	}
	p.say("%s is back", p.returned())
	return wait(ctx, 3*time.Second)
}

// finish stops the nodes and checks who ran what.
func (p *promotions) finish(ctx context.Context) error {
	for i, r := range p.reigns {
		t := term{generation: r.generation, jobs: p.jobs, switched: window{p.begun, p.from}}
		if i > 0 {
			t.switched = window{r.from, p.reigns[i-1].to}
		}
		p.terms = append(p.terms, t)
	}
	if err := p.stage.finish(ctx); err != nil {
		return err
	}
	p.reigns[len(p.reigns)-1].window.to = time.Now()
	wrong, inFlight := usurped(p.lines, p.books.started(), p.reigns)
	p.findings = slices.Concat(p.findings, wrong, idle(p.lines, p.reigns), turns(p.jobs, p.lines, p.reigns))
	ran, back := p.codes()
	p.note("%d promotions; %s ran %d times, %s %d; %d lines of runs that were in flight when their generation was replaced; the node that came back ran %d times",
		len(p.reigns)-1, oldGeneration, ran[oldGeneration], newGeneration, ran[newGeneration], inFlight, back)
	for i, r := range p.reigns[1:] {
		near := window{r.from.Add(-time.Second), p.reigns[i].to.Add(time.Second)}
		late := lags(starts(p.lines), func(l line) bool { return near.holds(l.tick) })
		p.note("promotion %d, of %s, %s from start to answer: the latest run started %s after it was due",
			i+1, r.generation, short(p.reigns[i].to.Sub(r.from)), short(quantile(late, 1)))
	}
	return nil
}

// returned is the name of the node that comes back when its generation has been retired.
func (p *promotions) returned() string { return fmt.Sprintf("%s%d", oldGeneration, p.each+1) }

// codes counts what the code of each generation ran, and what the node that came back did, which may run nothing.
func (p *promotions) codes() (ran map[string]int, back int) {
	ran = map[string]int{}
	for _, l := range starts(p.lines) {
		ran[l.label]++
		if !strings.HasPrefix(l.node, l.label) {
			p.accuse(usurper, l.job, "the code of %s ran on %s: %s", l.label, l.node, l)
		}
		if l.node == p.returned() {
			back++
			p.accuse(usurper, l.job, "a node of a retired generation ran: %s", l)
		}
	}
	return ran, back
}
