// Package generations compares the deployed clusters of a namespace: the definitions that each
// cluster's nodes hold, and how they differ from the active ones. It also promotes a generation.
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
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Known is the state of all generations of a namespace, read once.
type Known struct {
	Control ledger.Control
	l       *ledger.Ledger
	stored  []query.Stored             // all jobs, by name, without their definitions
	runBy   map[string]string          // job -> the generation that runs it, where this version can read the definition
	defs    map[string]jobs.Definition // the stored definitions that were loaded, by job
	of      map[string]*generation     // by name
	members []roster.Member            // living nodes
	orphans map[string]bool            // jobs that no node has, although nodes of their generation are alive
}

// generation is the state of one generation.
type generation struct {
	nodes   []string            // names of the living nodes
	alive   int                 // how many of them may claim; draining nodes may not
	held    map[string][]string // by job: the digests that claiming nodes hold
	unclear int                 // for how many of them that cannot be read
	kept    map[string]*version // the definition of each job that it would run
}

// version is a job's definition in a generation. Its text is read where another one is stored for
// the job.
type version struct {
	define.Announced
	def jobs.Definition
}

// Read reads the state of all generations. It reads the texts only of definitions that differ,
// because a digest covers name, generation and content.
func Read(ctx context.Context, l *ledger.Ledger, r *roster.Roster) (*Known, error) {
	k := &Known{l: l, runBy: make(map[string]string), defs: make(map[string]jobs.Definition), of: make(map[string]*generation),
		orphans: make(map[string]bool)}
	var err error
	if k.Control, err = l.Control(ctx); err != nil {
		return nil, err
	}
	k.named(k.Control.Generation)
	if k.stored, err = query.Entries(ctx, l); err != nil {
		return nil, err
	}
	announced, err := define.ListAnnounced(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := k.noteStored(ctx, announced); err != nil {
		return nil, err
	}
	view, members, _, err := cluster.ReadRoster(ctx, l, r, nil, cluster.PartsNeeded(l.All()...))
	if err != nil {
		return nil, err
	}
	k.members = members
	k.noteHeld(view)
	k.noteAnnounced(announced)
	return k, k.differing(ctx)
}

// noteStored notes which generation runs each stored job: the generation that announces the
// definition, or that the text names.
func (k *Known) noteStored(ctx context.Context, announced []define.Announced) error {
	by := make(map[string]string, len(announced))
	for _, a := range announced {
		by[a.Digest] = a.Generation
	}
	var others []string
	for _, s := range k.stored {
		if s.Err != nil {
			continue
		}
		generation, known := by[s.Digest]
		if !known {
			others = append(others, s.Job)
			continue
		}
		k.runBy[s.Job] = generation
		k.named(generation)
	}
	return k.load(ctx, others)
}

// load reads the stored definitions of jobs, given by name. A job in an unknown format has no known
// generation.
func (k *Known) load(ctx context.Context, names []string) error {
	digests := make([][]string, k.l.Partitions())
	var some []query.Stored
	for _, job := range names {
		i, stored := slices.BinarySearchFunc(k.stored, job, func(s query.Stored, job string) int { return strings.Compare(s.Job, job) })
		if _, loaded := k.defs[job]; !stored || loaded || k.stored[i].Err != nil {
			continue
		}
		s := k.stored[i]
		some = append(some, s)
		part := k.l.Partition(job)
		digests[part] = append(digests[part], s.Digest)
	}
	texts, err := k.texts(ctx, digests)
	if err != nil {
		return err
	}
	for _, s := range some {
		d, err := jobs.ParseDefinition([]byte(texts[s.Digest]))
		if err != nil { // a newer or an unknown writer stored it
			delete(k.runBy, s.Job)
			continue
		}
		k.defs[s.Job], k.runBy[s.Job] = d, d.Generation
		k.named(d.Generation)
	}
	return nil
}

// noteAnnounced notes the announced definitions. If a generation has several of one job, the
// definition that living nodes hold counts, then the newest. A job of the active generation that
// was removed is left out.
func (k *Known) noteAnnounced(announced []define.Announced) {
	stored := make(map[string]bool, len(k.stored))
	for _, s := range k.stored {
		stored[s.Job] = true
	}
	removed := func(a define.Announced, g *generation) bool {
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
}

// differing reads the kept definitions that are not the stored ones, and the stored definitions in
// their place. Definitions whose texts are missing, or do not match their announcement, are left
// out.
func (k *Known) differing(ctx context.Context) error {
	current := make(map[string]string, len(k.stored))
	for _, s := range k.stored {
		current[s.Job] = s.Digest
	}
	digests := make([][]string, k.l.Partitions())
	var others []string
	for _, g := range k.of {
		for job, v := range g.kept {
			if v.Digest != current[job] {
				part := k.l.Partition(job)
				digests[part] = append(digests[part], v.Digest)
				others = append(others, job)
			}
		}
	}
	texts, err := k.texts(ctx, digests)
	if err != nil {
		return err
	}
	for name, g := range k.of {
		maps.DeleteFunc(g.kept, func(job string, v *version) bool {
			if v.Digest == current[job] {
				return false
			}
			d, err := jobs.ParseDefinition([]byte(texts[v.Digest]))
			v.def = d // else a newer or an unknown writer stored it
			return err != nil || d.Name != job || d.Generation != name || d.Digest() != v.Digest
		})
	}
	return k.load(ctx, others)
}

// texts reads definitions by their digests in each partition.
func (k *Known) texts(ctx context.Context, digests [][]string) (map[string]string, error) {
	texts := make(map[string]string)
	for part, of := range digests {
		if len(of) == 0 {
			continue
		}
		some, err := query.Definitions(ctx, k.l, part, of)
		if err != nil {
			return nil, err
		}
		maps.Copy(texts, some)
	}
	return texts, nil
}

// named is the generation of that name, added if there was none.
func (k *Known) named(name string) *generation {
	if k.of[name] == nil {
		k.of[name] = &generation{held: make(map[string][]string), kept: make(map[string]*version)}
	}
	return k.of[name]
}

// noteHeld notes the definitions that living nodes hold, and the jobs that no living node has.
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
	for job, generation := range k.runBy {
		if g := k.of[generation]; g.alive > 0 && g.unclear == 0 && g.held[job] == nil {
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
	by, readable := k.runBy[job]
	return readable && by == generation, readable
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
