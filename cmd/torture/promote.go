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
func promote(ctx context.Context, r *rehearsal, s *stage) {
	for _, g := range []string{oldGeneration, newGeneration} {
		c := s.settings
		c.label, c.node = g, map[string]any{"generation": g}
		s.check(c.writeConfig(filepath.Join(s.dir, g+".yaml"), s.sink(), s.lives()))
	}
	p := promotions{stage: s, periods: []activePeriod{{oldGeneration, window{from: time.Now()}}}, each: r.nodes, every: max(r.seconds/6, 2*time.Second)}
	s.joinAll(ctx, oldGeneration, r.nodes)
	s.joinAll(ctx, newGeneration, r.nodes)
	s.check(wait(ctx, p.every))
	p.standBy(ctx)
	p.to(ctx, newGeneration)
	p.to(ctx, oldGeneration)
	p.cutShort(ctx)
	p.retire(ctx)
	p.finish(ctx)
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

// promotions are what the scenario has done.
type promotions struct {
	*stage
	periods []activePeriod // the last one goes on
	each    int            // nodes of each generation
	every   time.Duration
}

func (p *promotions) command(generation string) []string {
	return []string{"generations", "promote", generation, "--config", generation + ".yaml", "--redis", "redis://" + p.redis.Addr()}
}

// standBy checks that a generation that was never promoted has run nothing, and that one that nobody has is refused.
func (p *promotions) standBy(ctx context.Context) {
	nobodys := append(p.command(newGeneration)[:2:2], "nobodys", "--redis", "redis://"+p.redis.Addr())
	p.refused(ctx, "promote a generation that no node has", nobodys...)
	lines, _, err := readSink(p.sink())
	p.check(err)
	wrong, _ := ranInactive(lines, nil, []activePeriod{{oldGeneration, window{p.periods[0].from, time.Now()}}})
	p.findings = append(p.findings, wrong...)
}

// to promotes a generation amid the starts of a second.
func (p *promotions) to(ctx context.Context, generation string) {
	p.amid(ctx)
	a := p.must(ctx, p.command(generation)...)
	p.succeed(generation, a.began, a.ended)
	p.say("%s is active; the command took %s", generation, short(a.ended.Sub(a.began)))
	p.check(wait(ctx, p.every))
}

// succeed ends a period and begins the next.
func (p *promotions) succeed(generation string, began, ended time.Time) {
	p.periods[len(p.periods)-1].window.to = ended
	p.periods = append(p.periods, activePeriod{generation, window{from: began}})
}

// cutShort kills the command when the ledger says that the promotion goes on, and runs it again. If the command was done by
// then, the other generation is promoted back, and it is tried again.
func (p *promotions) cutShort(ctx context.Context) {
	control := func(field string) string {
		return p.client.HGet(context.WithoutCancel(ctx), "{"+namespace+"}:control", field).Val()
	}
	going := func(context.Context) bool { return control("promoting") != "" }
	for try := 1; ; try++ {
		p.amid(ctx)
		a := p.cut(ctx, going, p.command(newGeneration)...)
		left := control("promoting")
		again := p.must(ctx, p.command(newGeneration)...)
		p.succeed(newGeneration, a.began, again.ended)
		if left != "" {
			p.note("SIGKILL to the promoting command %s after its start left %q in the control record; repeated, it took %s", short(a.ended.Sub(a.began)), left, short(again.ended.Sub(again.began)))
			p.check(wait(ctx, p.every))
			return
		}
		if try == cuts {
			p.check(fmt.Errorf("in %d tries no promotion was caught half way; of the last one, %s", cuts, a.how()))
		}
		p.check(wait(ctx, p.every))
		p.to(ctx, oldGeneration)
	}
}

// retire ends the old nodes, and starts one of them again later.
func (p *promotions) retire(ctx context.Context) {
	old := p.named(oldGeneration)
	for _, n := range old {
		p.leave(n)
	}
	p.gone(ctx, old)
	p.check(wait(ctx, time.Second))
	p.join(ctx, p.returned(), oldGeneration)
	p.say("%s is back", p.returned())
	p.check(wait(ctx, 3*time.Second))
}

// finish stops the nodes and checks who ran what.
func (p *promotions) finish(ctx context.Context) {
	for i, r := range p.periods {
		t := term{generation: r.generation, jobs: p.jobs, switched: window{p.begun, p.from}}
		if i > 0 {
			t.switched = window{r.from, p.periods[i-1].to}
		}
		p.terms = append(p.terms, t)
	}
	p.stage.finish(ctx)
	p.periods[len(p.periods)-1].window.to = time.Now()
	wrong, inFlight := ranInactive(p.lines, p.books.started(), p.periods)
	p.findings = slices.Concat(p.findings, wrong, idle(p.lines, p.periods), turns(p.jobs, p.lines, p.periods))
	ran, back := p.codes()
	p.note("%d promotions; %s ran %d times, %s %d; %d lines of runs that were in flight when their generation was replaced; the node that came back ran %d times",
		len(p.periods)-1, oldGeneration, ran[oldGeneration], newGeneration, ran[newGeneration], inFlight, back)
}

// returned is the name of the node that comes back when its generation has been retired.
func (p *promotions) returned() string { return fmt.Sprintf("%s%d", oldGeneration, p.each+1) }

// codes counts what the code of each generation ran, and what the node that came back did, which may run nothing.
func (p *promotions) codes() (ran map[string]int, back int) {
	ran = map[string]int{}
	for _, l := range starts(p.lines) {
		ran[l.label]++
		if !strings.HasPrefix(l.node, l.label) {
			p.accuse(inactive, l.job, "the code of %s ran on %s: %s", l.label, l.node, l)
		}
		if l.node == p.returned() {
			back++
			p.accuse(inactive, l.job, "a node of a retired generation ran: %s", l)
		}
	}
	return ran, back
}
