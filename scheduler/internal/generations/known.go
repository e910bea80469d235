// Package generations compares the deployed clusters of a namespace: what the nodes of each hold,
// and how it differs from what is run now. It also promotes a generation.
package generations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Known is the state of all generations of a namespace, read once.
type Known struct {
	Control ledger.Control
	stored  []ledger.Stored            // all jobs, by name
	defs    map[string]jobs.Definition // the definitions of the stored jobs that this version can read
	of      map[string]*generation     // by name
	members []roster.Member            // the living ones
	orphans map[string]bool            // jobs that no node has, although nodes of their generation are alive
}

// generation is the state of one generation.
type generation struct {
	nodes   []string            // names of the living nodes
	alive   int                 // how many of them may claim; draining nodes may not
	held    map[string][]string // what the nodes that may claim hold: by job, the digests
	unclear int                 // for how many of them that cannot be read
	kept    map[string]*version // the definition of each job that it would run
}

// version is a job's definition in a generation.
type version struct {
	ledger.Announced
	def jobs.Definition
}

// Read reads the state of all generations.
func Read(ctx context.Context, l *ledger.Ledger, r *roster.Roster) (*Known, error) {
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
	announced, err := l.Announced(ctx)
	if err != nil {
		return nil, err
	}
	view, members, _, err := cluster.ReadRoster(ctx, l, r, nil, cluster.PartsNeeded(l.All()...))
	if err != nil {
		return nil, err
	}
	k.members = members
	k.noteHeld(view)
	return k, k.noteAnnounced(ctx, l, announced)
}

// noteAnnounced notes the announced definitions. If a generation has several of one job, the one that living
// nodes hold counts, then the newest. A definition whose text is not stored is left out, and so is
// a job of the active generation that was removed.
func (k *Known) noteAnnounced(ctx context.Context, l *ledger.Ledger, announced []ledger.Announced) error {
	stored := make(map[string]bool, len(k.stored))
	for _, s := range k.stored {
		stored[s.Job] = true
	}
	removed := func(a ledger.Announced, g *generation) bool {
		return !stored[a.Job] && g.held[a.Job] == nil && a.Generation == k.Control.Generation && k.Control.Promoting == ""
	}
	for _, a := range announced {
		g := k.named(a.Generation)
		if removed(a, g) {
			continue
		}
		was := g.kept[a.Job]
		if was == nil {
			g.kept[a.Job] = &version{Announced: a}
			continue
		}
		held, before := slices.Contains(g.held[a.Job], a.Digest), slices.Contains(g.held[a.Job], was.Digest)
		if held && !before || held == before && a.Newer(was.Announced) {
			was.Announced = a
		}
	}
	return k.texts(ctx, l)
}

// texts reads the definitions that are kept.
func (k *Known) texts(ctx context.Context, l *ledger.Ledger) error {
	digests := make([][]string, l.Partitions())
	for _, g := range k.of {
		for job, v := range g.kept {
			part := l.Partition(job)
			digests[part] = append(digests[part], v.Digest)
		}
	}
	texts := make(map[string]string)
	for part, of := range digests {
		some, err := l.Definitions(ctx, part, of)
		if err != nil {
			return err
		}
		maps.Copy(texts, some)
	}
	for name, g := range k.of {
		maps.DeleteFunc(g.kept, func(job string, v *version) bool {
			d, err := jobs.ParseDefinition([]byte(texts[v.Digest]))
			v.def = d // else a newer or an unknown writer stored it
			return err != nil || d.Name != job || d.Generation != name || d.Digest() != v.Digest
		})
	}
	return nil
}

// named is the generation of that name, added if there was none.
func (k *Known) named(name string) *generation {
	if k.of[name] == nil {
		k.of[name] = &generation{held: make(map[string][]string), kept: make(map[string]*version)}
	}
	return k.of[name]
}

// noteHeld notes what the living nodes hold, and which jobs none of them has.
func (k *Known) noteHeld(view *cluster.View) {
	seen := make(map[string]bool) // each set belongs to one generation
	for _, m := range k.members {
		g, set := k.named(m.Generation), view.Sets[m.Set]
		g.nodes = append(g.nodes, m.Name)
		if m.Draining {
			continue
		}
		if g.alive++; !set.Complete() {
			g.unclear++
		}
		if seen[m.Set] {
			continue
		}
		seen[m.Set] = true
		for job, digest := range set.All() {
			g.held[job] = append(g.held[job], digest)
		}
	}
	for job, d := range k.defs {
		if g := k.of[d.Generation]; g.alive > 0 && g.unclear == 0 && g.held[job] == nil {
			k.orphans[job] = true
		}
	}
}

// Names are the names of all known generations, in order.
func (k *Known) Names() []string { return slices.Sorted(maps.Keys(k.of)) }

// Nodes are the names of a generation's living nodes, in order.
func (k *Known) Nodes(name string) []string { return slices.Sorted(slices.Values(k.of[name].nodes)) }

// runs reports whether a generation runs a job now; readable is false when the job's definition
// cannot be read.
func (k *Known) runs(generation, job string) (is, readable bool) {
	d, readable := k.defs[job]
	return readable && d.Generation == generation, readable
}

// relabelled is a stored definition under another generation's name. No node has it, so none claims
// the job.
func relabelled(d jobs.Definition, generation string) jobs.Definition {
	d.Generation = generation
	return d
}

// quoted names a generation in a text, also "".
func quoted(generation string) string { return fmt.Sprintf("generation %q", generation) }

// Some lists the first of many names.
func Some(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
