// Package generations knows the deployed clusters of a namespace beside each other: what the nodes of each hold, in what it differs
// from what is run now, and how its definitions become those that are run.
package generations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/roster"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Known is what can be known of the generations of a namespace, read once.
type Known struct {
	Control ledger.Control
	stored  []ledger.Stored            // all jobs, by name
	defs    map[string]jobs.Definition // of stored, by job; those that this version can read
	of      map[string]*generation     // by name
	members []roster.Member            // living ones
	orphans map[string]bool            // jobs that are nobody's: of a generation of which nodes live, none of which has them
}

// generation is what there is of one of them.
type generation struct {
	nodes   []string            // names of the living ones
	alive   int                 // how many of those may claim: those that drain may not
	held    map[string][]string // what those that may claim hold: by job, the digests
	unclear int                 // of how many of those that cannot be read
	kept    map[string]*aside   // its definitions beside the active ones, by job
}

// aside is one definition beside the active ones.
type aside struct {
	ledger.Aside
	def jobs.Definition
}

// Read reads it all; jobs first, for what is stored of a generation that is promoted now was beside before.
func Read(ctx context.Context, l *ledger.Ledger, roster *roster.Roster) (*Known, error) {
	k := &Known{defs: make(map[string]jobs.Definition), of: make(map[string]*generation), orphans: make(map[string]bool)}
	var err error
	if k.Control, err = l.Control(ctx); err != nil {
		return nil, err
	}
	k.named(k.Control.Generation)
	if k.stored, err = l.Jobs(ctx); err != nil {
		return nil, err
	}
	for _, s := range k.stored {
		if d, err := jobs.ParseDefinition(s.Definition); err == nil && s.Err == nil {
			k.defs[s.Job] = d
			k.named(d.Generation)
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
		k.named(a.Generation).kept[a.Job] = &aside{Aside: a, def: d}
	}
	crowd, members, _, err := cluster.LookAround(ctx, roster)
	if err != nil {
		return nil, err
	}
	k.members = members
	k.announce(crowd)
	return k, nil
}

// named is the generation of that name, a new one if there was no sign of it before.
func (k *Known) named(name string) *generation {
	if k.of[name] == nil {
		k.of[name] = &generation{held: make(map[string][]string), kept: make(map[string]*aside)}
	}
	return k.of[name]
}

// announce notes what the living nodes hold, and which jobs none of them has.
func (k *Known) announce(crowd *cluster.Crowd) {
	seen := make(map[string]bool) // sets, each of which is one generation's
	for _, m := range k.members {
		g, set := k.named(m.Generation), crowd.Sets[m.Set]
		g.nodes = append(g.nodes, m.Name)
		if m.Draining {
			continue
		}
		if g.alive++; set == nil {
			g.unclear++
		}
		if seen[m.Set] {
			continue
		}
		seen[m.Set] = true
		for job, digest := range set {
			g.held[job] = append(g.held[job], digest)
		}
	}
	for job, d := range k.defs {
		if g := k.of[d.Generation]; g.alive > 0 && g.unclear == 0 && g.held[job] == nil {
			k.orphans[job] = true
		}
	}
}

// Names are those of all generations that there is any sign of, in order.
func (k *Known) Names() []string { return slices.Sorted(maps.Keys(k.of)) }

// Nodes are the names of a generation's living nodes, in order.
func (k *Known) Nodes(name string) []string { return slices.Sorted(slices.Values(k.of[name].nodes)) }

// runs says that a job is a generation's now; readable is false when its definition cannot be read.
func (k *Known) runs(generation, job string) (is, readable bool) {
	d, readable := k.defs[job]
	return readable && d.Generation == generation, readable
}

// borrowed says that an orphan's definition is another generation's, which has it beside: a promotion has only put it under
// the name of the generation that it is stored as.
func (k *Known) borrowed(job, digest string) bool {
	of := k.defs[job].Generation
	if !k.orphans[job] {
		return false
	}
	for name, g := range k.of {
		if a := g.kept[job]; name != of && a != nil && relabelled(a.def, of).Digest() == digest {
			return true
		}
	}
	return false
}

// relabelled is a stored definition under another generation's name: nobody has it, so nobody claims the job.
func relabelled(d jobs.Definition, generation string) jobs.Definition {
	d.Generation = generation
	return d
}

// quoted names a generation in a text: "" is one as well.
func quoted(generation string) string { return fmt.Sprintf("generation %q", generation) }

// Some names the first of many.
func Some(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
