package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// known is what can be known of the generations of a namespace, as it was read at once.
type known struct {
	control ledger.Control
	stored  []ledger.Stored              // all jobs, by name
	defs    map[string]jobs.Definition   // of stored, by job; those that this version can read
	aside   map[string]map[string]*aside // by generation and job
	crowd   *cluster.Crowd
	members []sharding.Member // living ones
	foreign int               // records in the roster that this version cannot read
	names   []string          // of all generations
	orphans map[string]bool   // jobs that are nobody's: of a generation of which nodes live, none of which has them
}

// aside is one definition beside the active ones.
type aside struct {
	ledger.Aside
	def jobs.Definition
}

// known reads it all; jobs first, for what is stored of a generation that is promoted now was beside before.
func (i *Inspector) known(ctx context.Context, l *ledger.Ledger) (*known, error) {
	k := &known{defs: make(map[string]jobs.Definition), aside: make(map[string]map[string]*aside)}
	var err error
	if k.control, err = l.Control(ctx); err != nil {
		return nil, err
	}
	if k.stored, err = l.Jobs(ctx); err != nil {
		return nil, err
	}
	for _, s := range k.stored {
		if d, err := jobs.ParseDefinition(s.Definition); err == nil && s.Err == nil {
			k.defs[s.Job] = d
		}
	}
	beside, _, err := l.Beside(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range beside {
		d, err := jobs.ParseDefinition(a.Text)
		if err != nil || d.Name != a.Job || d.Generation != a.Generation || d.Digest() != a.Digest {
			continue // written by a newer version, or by nobody we know
		}
		if k.aside[a.Generation] == nil {
			k.aside[a.Generation] = make(map[string]*aside)
		}
		k.aside[a.Generation][a.Job] = &aside{Aside: a, def: d}
	}
	k.crowd, k.members, k.foreign, err = cluster.LookAround(ctx, i.roster())
	k.names = k.generations()
	k.orphans = k.nobodys()
	return k, err
}

// generations are the names of all generations that there is any sign of.
func (k *known) generations() []string {
	names := map[string]bool{k.control.Generation: true}
	for _, d := range k.defs {
		names[d.Generation] = true
	}
	for name := range k.aside {
		names[name] = true
	}
	for _, m := range k.members {
		names[m.Generation] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// alive are the living nodes of a generation that may claim: those that drain may not.
func (k *known) alive(generation string) (nodes []sharding.Member) {
	for _, m := range k.members {
		if m.Generation == generation && !m.Draining {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// announced is what living nodes of a generation hold: by job, the digests. unclear counts nodes of which that cannot be read.
func (k *known) announced(generation string) (held map[string][]string, unclear int) {
	held = make(map[string][]string)
	seen := make(map[string]bool)
	for _, m := range k.alive(generation) {
		set := k.crowd.Sets[m.Set]
		if set == nil {
			unclear++
		}
		if seen[m.Set] {
			continue
		}
		seen[m.Set] = true
		for job, digest := range set {
			held[job] = append(held[job], digest)
		}
	}
	return held, unclear
}

// generationOf is the generation that runs a job; false when its definition cannot be read.
func (k *known) generationOf(job string) (string, bool) {
	d, ok := k.defs[job]
	return d.Generation, ok
}

// nobodys are the jobs of orphans.
func (k *known) nobodys() map[string]bool {
	orphans := make(map[string]bool)
	held := make(map[string]map[string][]string) // by generation and job, of those that can be known
	for _, name := range k.names {
		if jobs, unclear := k.announced(name); unclear == 0 && len(k.alive(name)) > 0 {
			held[name] = jobs
		}
	}
	for job, d := range k.defs {
		if has, sure := held[d.Generation]; sure && has[job] == nil {
			orphans[job] = true
		}
	}
	return orphans
}

// borrowed says that an orphan's definition is another generation's, which has it beside: a promotion has only put it under
// the name of the generation that it is stored as.
func (k *known) borrowed(job, digest string) bool {
	of := k.defs[job].Generation
	if !k.orphans[job] {
		return false
	}
	for name, kept := range k.aside {
		if a := kept[job]; name != of && a != nil && relabelled(a.def, of).Digest() == digest {
			return true
		}
	}
	return false
}

// matching says whether some jobs match, and whether some of those are a generation's, or its nodes hold them.
func (k *known) matching(matches func(string) bool, generation string, held map[string][]string) (of, some bool) {
	for _, s := range k.stored {
		now, ok := k.generationOf(s.Job)
		some = some || matches(s.Job)
		of = of || matches(s.Job) && (!ok || now == generation)
	}
	for job := range k.aside[generation] {
		of = of || matches(job)
	}
	for job := range held {
		of = of || matches(job)
	}
	return of, some || of
}

// parsed is a definition as the registrar has a node's own.
func parsed(d jobs.Definition) (*work.Job, error) {
	j := d.Job()
	schedule, err := j.ParsedSchedule()
	if err != nil {
		return nil, err
	}
	if schedule == nil && d.After == "" {
		return nil, errors.New("no schedule")
	}
	return &work.Job{Job: j, Schedule: schedule, Def: d, Digest: d.Digest()}, nil
}

// quoted names a generation in a text: "" is one as well.
func quoted(generation string) string { return fmt.Sprintf("generation %q", generation) }

// each quotes names, of which one may be "".
func each(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return out
}

// relabelled is a stored definition under another generation's name: nobody has it, so nobody claims the job.
func relabelled(d jobs.Definition, generation string) jobs.Definition {
	d.Generation = generation
	return d
}

// Names are the first of many names, in order.
type Names struct {
	Count int      `json:"count"`
	First []string `json:"first"` // 20 at most
}

// namesMost is how many names a Names has.
const namesMost = 20

func (n *Names) add(name string) {
	if n.Count++; len(n.First) < namesMost {
		n.First = append(n.First, name)
	}
}

// shown is n with a list, also when that is empty.
func (n Names) shown() Names {
	if n.First == nil {
		n.First = []string{}
	}
	return n
}
