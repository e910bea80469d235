package generations

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Options are the options of a promotion.
type Options struct {
	Pattern       string // of job names, as in path.Match; "": all jobs
	CancelRunning bool   // cancels runs of these jobs on nodes of other generations
	Force         bool   // also without a living node, and with definitions that no living node holds
	Author        string
}

// Promotion is the result of Promote. Names are in order.
type Promotion struct {
	Was           string // the generation that was active before
	Epoch         int64
	Resumed       bool     // an interrupted promotion was completed; its earlier part is not listed
	Switched      []string // belonged to another generation
	Created       []string // belonged to none
	Orphaned      []string // the generation does not have them
	LeftOut       []string // stored for the generation, but no living node of it has them
	UnknownFormat []string // their records cannot be read
	Cancelled     int
}

// promoter carries out one promotion.
type promoter struct {
	l          *ledger.Ledger
	roster     *roster.Roster
	o          Options
	p          ledger.Promotion
	known      *Known
	out        Promotion
	fresh      map[string]bool // jobs that no generation had, and that are not counted yet
	unreadable map[string]bool // jobs whose records cannot be read
}

// Promote makes a generation's definitions the active ones. A repeated call completes an
// interrupted promotion under the same epoch. With an error Promote also returns the part that was
// done.
func Promote(ctx context.Context, l *ledger.Ledger, r *roster.Roster, name string, o Options) (Promotion, error) {
	p := &promoter{l: l, roster: r, o: o, p: ledger.Promotion{Generation: name, Pattern: o.Pattern, Cancel: o.CancelRunning},
		fresh: make(map[string]bool), unreadable: make(map[string]bool)}
	if _, err := path.Match(o.Pattern, ""); err != nil || strings.ContainsAny(o.Pattern, "|\n") {
		return p.out, p.refused("the pattern %q is none: use * ? and [a-z] as in file names", o.Pattern)
	}
	err := p.run(ctx)
	for _, names := range [][]string{p.out.Switched, p.out.Created, p.out.Orphaned} {
		slices.Sort(names)
	}
	return p.out, err
}

// run carries out the promotion. An interrupted one is repeated from Begin on.
func (p *promoter) run(ctx context.Context) error {
	makers, err := define.Makers(ctx, p.l)
	if err != nil {
		return p.failed(err)
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	p.out.Was = p.known.Control.Generation
	if err := p.permitted(); err != nil {
		return err
	}
	goals := p.goals()
	if p.done(makers, goals) {
		p.out.Epoch = p.known.Control.Epoch
		return p.cancel(ctx)
	}
	for _, g := range goals {
		if g.stored == nil {
			p.fresh[g.job] = true
		}
	}
	if p.p, err = define.Begin(ctx, p.l, p.p); err != nil {
		return err
	}
	p.out.Epoch, p.out.Resumed = p.p.Epoch, p.p.Resumed
	if err := define.Raise(ctx, p.l, p.p); err != nil {
		return err
	}
	for round := 0; ; round++ {
		if err := p.read(ctx); err != nil { // again: nodes could create jobs until the gates were raised
			return err
		}
		if goals = p.goals(); len(goals) == 0 {
			break
		}
		if round == cluster.Rounds {
			return p.failed(fmt.Errorf("%d jobs kept changing, %s for one; promote it again", len(goals), goals[0].job))
		}
		if err := p.switchAll(ctx, goals); err != nil {
			return err
		}
	}
	for job := range p.fresh { // once the gates are raised, the generation's nodes may have created them
		if its, _ := p.known.runs(p.p.Generation, job); its {
			p.out.Created = append(p.out.Created, job)
		}
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.cancel(ctx); err != nil {
		return err
	}
	_, err = define.Promoted(ctx, p.l, p.p)
	return err
}

func (p *promoter) read(ctx context.Context) (err error) {
	p.known, err = Read(ctx, p.l, p.roster)
	return err
}

// failed wraps an error of the promotion.
func (p *promoter) failed(err error) error {
	return fmt.Errorf("promote %s: %w", quoted(p.p.Generation), err)
}

// refused is the error of a refused promotion.
func (p *promoter) refused(format string, args ...any) error {
	return fmt.Errorf("%w: promote %s: %s", ledger.ErrRefused, quoted(p.p.Generation), fmt.Sprintf(format, args...))
}

// done reports whether there is nothing to promote, and no promotion under way that this call would
// replace.
func (p *promoter) done(makers []string, goals []*goal) bool {
	if len(goals) > 0 || p.known.Control.Promoting != "" {
		return false
	}
	other := func(maker string) bool { return maker != p.p.Generation }
	return p.p.Pattern != "" || !other(p.known.Control.Generation) && !slices.ContainsFunc(makers, other)
}

// goal is one job that is to be switched.
type goal struct {
	job     string
	stored  *query.Stored         // nil for a job that does not exist yet
	want    *version              // nil for a job that the generation does not have
	request *cluster.Registration // the request to the ledger
}

// goals are the jobs that the generation does not run yet, by name.
func (p *promoter) goals() []*goal {
	k := p.known
	p.out.LeftOut, p.out.UnknownFormat = nil, nil
	wanted := p.wanted()
	var goals []*goal
	for n := range k.stored {
		s := &k.stored[n]
		want := wanted[s.Job]
		delete(wanted, s.Job)
		if !p.matches(s.Job) {
			continue
		}
		switch its, readable := k.runs(p.p.Generation, s.Job); {
		case !readable || p.unreadable[s.Job]:
			p.out.UnknownFormat = append(p.out.UnknownFormat, s.Job)
		case its:
		case want != nil || p.p.Pattern == "":
			goals = append(goals, &goal{job: s.Job, stored: s, want: want})
		}
	}
	for job, want := range wanted {
		if !p.unreadable[job] {
			goals = append(goals, &goal{job: job, want: want})
		}
	}
	slices.SortFunc(goals, func(a, b *goal) int { return strings.Compare(a.job, b.job) })
	return goals
}

func (p *promoter) matches(job string) bool {
	if p.p.Pattern == "" {
		return true
	}
	ok, _ := path.Match(p.p.Pattern, job) // the pattern was checked before
	return ok
}

// wanted are the definitions to promote: held by the generation's living nodes, or with Force all
// that are stored.
func (p *promoter) wanted() map[string]*version {
	g, wanted := p.known.of[p.p.Generation], make(map[string]*version)
	for _, job := range slices.Sorted(maps.Keys(g.kept)) {
		its, _ := p.known.runs(p.p.Generation, job)
		switch a := g.kept[job]; {
		case !p.matches(job):
		case p.o.Force || slices.Contains(g.held[job], a.Digest):
			wanted[job] = a
		case !its:
			p.out.LeftOut = append(p.out.LeftOut, job)
		}
	}
	return wanted
}

// permitted returns why the promotion is refused; nil when it is not.
func (p *promoter) permitted() error {
	g := p.known.of[p.p.Generation]
	if g == nil {
		names := p.known.Names()
		for i, name := range names {
			names[i] = fmt.Sprintf("%q", name)
		}
		return p.refused("there is no such generation; there are %s (`generations list`); start a node of it first, which goes on standby", Some(names))
	}
	if err := p.matched(g); err != nil {
		return err
	}
	switch {
	case p.o.Force:
	case g.alive == 0:
		return p.refused("no node of it is alive, and nothing would run; start one first (or use --force, if you are about to)")
	case g.unclear > 0:
		return p.refused("what %d of its %d nodes have cannot be read by this version, or was not announced yet; ask again in a few seconds, with the newest version", g.unclear, g.alive)
	}
	var unsettled []string
	for job, digests := range g.held {
		its, _ := p.known.runs(p.p.Generation, job)
		if a := g.kept[job]; p.matches(job) && !its && (a == nil || !p.o.Force && !slices.Contains(digests, a.Digest)) {
			unsettled = append(unsettled, job)
		}
	}
	if len(unsettled) > 0 {
		slices.Sort(unsettled)
		return p.refused("its nodes have not said yet how they would run %s; they do within seconds of their start, ask again then", Some(unsettled))
	}
	return nil
}

// matched refuses a pattern that matches no job, or no job of the generation: none that it runs,
// has stored or its nodes hold.
func (p *promoter) matched(g *generation) error {
	if p.p.Pattern == "" {
		return nil
	}
	of, some := false, false
	for _, s := range p.known.stored {
		if p.matches(s.Job) {
			its, readable := p.known.runs(p.p.Generation, s.Job)
			of, some = of || its || !readable, true
		}
	}
	for job := range g.kept {
		of = of || p.matches(job)
	}
	for job := range g.held {
		of = of || p.matches(job)
	}
	switch {
	case of:
		return nil
	case some:
		return p.refused("it has no job that matches %s; `generations list` shows what it lacks", p.p.Pattern)
	}
	return p.refused("no job matches %s; `jobs list` shows their names", p.p.Pattern)
}
