//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// scenario is one thing that happens to a cluster.
type scenario struct {
	name    string
	prepare func(*rehearsal) settings // nil: the usual jobs
	long    bool                      // not among all with -short
	act     func(context.Context, *rehearsal, *stage)
}

var scenarios = []scenario{
	{name: "plain", act: plain},
	{name: "kill", act: kill},
	{name: "freeze", prepare: freezeSettings, act: freeze},
	{name: "outage", act: outage},
	{name: "emptied", act: emptied, long: true},
	{name: "churn", prepare: churnSettings, act: churn},
	{name: "failover", prepare: failoverSettings, act: failover, long: true},
	{name: "zombie", prepare: failoverSettings, act: zombie, long: true},
	{name: "masters", prepare: mastersSettings, act: masters, long: true},
	{name: "broken", prepare: brokenSettings, act: broken},
}

func names() []string {
	var out []string
	for _, s := range scenarios {
		out = append(out, s.name)
	}
	return out
}

// choose finds scenarios by a list of names. All of them are fewer when it has to be short.
func choose(list string, short bool) ([]scenario, error) {
	var chosen []scenario
	if list == "all" {
		for _, s := range scenarios {
			if !s.long || !short {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-scenario %s: there is no such; there are all, %s", name, strings.Join(names(), ", "))
		}
		if slices.ContainsFunc(chosen, func(s scenario) bool { return s.name == name }) {
			return nil, fmt.Errorf("-scenario %s: it is there twice; each has one directory", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// usual are the jobs and times of most scenarios.
func usual(r *rehearsal) settings {
	s := settings{jobs: everySecond(ticking), ttl: 5 * time.Second}
	if r.short {
		s.ttl = 3 * time.Second
	}
	return s
}

// undone is a scenario that could not be carried out to its end.
const undone judge.Kind = "UNDONE"

// perform sets the stage, acts, and ends every process again.
func (sc scenario) perform(ctx context.Context, r *rehearsal, dir, binary string, say func(string, ...any)) row {
	ctx, cancel := context.WithTimeout(ctx, r.seconds+3*standstill)
	defer cancel()
	prepare := sc.prepare
	if prepare == nil {
		prepare = usual
	}
	s := &stage{settings: prepare(r), dir: dir, binary: binary, hurried: r.short}
	s.say = func(format string, args ...any) { say("%-7s %s", sc.name, fmt.Sprintf(format, args...)) }
	s.drain = 10 * time.Second
	s.say("%d jobs, ttl %s", len(s.jobs), s.ttl)
	err := play(func() {
		s.open(ctx)
		sc.act(ctx, r, s)
	})
	if err != nil && s.asked.IsZero() {
		s.crashes() // it may be why
	}
	if err = errors.Join(err, s.close()); err != nil {
		s.accuse(undone, sc.name, "%v", err)
	}
	out := newRow(sc.name, s)
	s.say("%s", out.result())
	return out
}
