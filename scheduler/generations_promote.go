package scheduler

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// PromoteOptions are the options of Promote; the zero value promotes all jobs, and lets what runs end by itself.
type PromoteOptions struct {
	// Pattern restricts it to jobs whose names match, as in path.Match. New jobs are then still made by the generation that
	// was active before. Default "", which is all jobs; "*" is not the same, it leaves the active generation what it is.
	Pattern string
	// CancelRunning ends what nodes of other generations run of these jobs. Default: it goes on, and holds its lease.
	CancelRunning bool
	// Force promotes although no living node has the generation, or has a definition that is kept of it. Nothing runs then
	// until such a node starts.
	Force bool
	// Author is who promotes; it is kept with the runs that are cancelled. Default "unknown".
	Author string
}

// Promotion says what Promote did. Jobs that an earlier, interrupted call has switched are not counted again.
type Promotion struct {
	Generation string `json:"generation"`
	Pattern    string `json:"pattern"`
	// Epoch is the promotion's number; that of the last one when there was nothing to do.
	Epoch int64 `json:"epoch"`
	// Resumed says that this call has brought an interrupted one to its end: what that had done is not counted.
	Resumed bool `json:"resumed"`
	// Switched were another generation's, and Created nobody's: this call made them, or meanwhile the generation's nodes did.
	Switched Names `json:"switched"`
	Created  Names `json:"created"`
	// Orphaned are jobs that the generation does not have: nobody runs them any more. `jobs remove` takes them away, a
	// promotion back brings them back.
	Orphaned Names `json:"orphaned"`
	// LeftOut are kept of the generation, but no living node of it has them.
	LeftOut Names `json:"left_out"`
	// LeftAlone are jobs whose records this version does not understand.
	LeftAlone Names `json:"left_alone"`
	// Cancelled is how many runs were told to end.
	Cancelled int `json:"cancelled"`
}

// Nothing says that there was nothing to do: the generation has these jobs already.
func (p Promotion) Nothing() bool {
	return !p.Resumed && p.Switched.Count+p.Created.Count+p.Orphaned.Count+p.Cancelled == 0
}

// promoter carries one promotion out.
type promoter struct {
	i     *Inspector
	l     *ledger.Ledger
	o     PromoteOptions
	p     ledger.Promotion
	known *known
	out   Promotion
	fresh map[string]bool // jobs that nobody had before, and that were not counted yet
	alone map[string]bool // jobs whose records are not understood
	swept map[string]bool // partitions in which what is beside was looked through, by generation
}

// Promote makes a generation's definitions those that are run: of all jobs, which makes it the active generation, or of those
// that match a pattern. Each job is switched in one script, so there is no instant at which two generations may claim a
// tick of it, and none at which nobody may for longer than its nodes need to learn of it, which is about 250 ms.
// A job whose schedule is the same goes on where it stands; ticks of another schedule that nobody ran are recorded as superseded, as in a
// deploy. Runs in flight go on, unless CancelRunning is set, and hold their leases.
//
// Interrupted anywhere, the same call goes on under the same epoch. Another promotion may begin meanwhile: it outdates this one.
// Promote of the generation that was active before is the way back. It returns ErrRefused for a generation that is not
// known, one without a living node, one whose nodes have just started, a pattern that is none or that no job of the generation
// matches, and, together with ErrClosed, while a move has closed the namespace. Where Redis answers later than max_skew, or the clocks
// of a Cluster's masters differ by more, it fails with both instants in the error, and goes on when it is called again.
func (i *Inspector) Promote(ctx context.Context, generation string, o PromoteOptions) (Promotion, error) {
	if _, err := path.Match(o.Pattern, ""); err != nil || strings.ContainsAny(o.Pattern, "|\n") {
		return Promotion{}, fmt.Errorf("%w: promote %s: the pattern %q is none: use * ? and [a-z] as in file names", ErrRefused, quoted(generation), o.Pattern)
	}
	l, err := i.openAppend(ctx)
	if err != nil {
		return Promotion{}, err
	}
	p := &promoter{i: i, l: l, o: o, p: ledger.Promotion{Generation: generation, Pattern: o.Pattern, Cancel: o.CancelRunning},
		fresh: make(map[string]bool), alone: make(map[string]bool), swept: make(map[string]bool)}
	err = p.run(ctx)
	return p.shown(), err
}

func (p *promoter) shown() Promotion {
	out := p.out
	out.Generation, out.Pattern = p.p.Generation, p.p.Pattern
	for _, n := range []*Names{&out.Switched, &out.Created, &out.Orphaned, &out.LeftOut, &out.LeftAlone} {
		*n = n.shown()
	}
	return out
}

// run is the promotion. What comes after Begin may be interrupted, and is then done again from Begin on.
func (p *promoter) run(ctx context.Context) error {
	makers, err := p.l.Makers(ctx)
	if err != nil {
		return fmt.Errorf("promote %s: %w", quoted(p.p.Generation), err)
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	goals, err := p.permitted()
	if err != nil {
		return err
	}
	if p.done(makers, goals) {
		p.out.Epoch = p.known.control.Epoch
		return p.cancel(ctx)
	}
	for _, g := range goals {
		if g.stored == nil {
			p.fresh[g.job] = true
		}
	}
	if p.p, err = p.l.Begin(ctx, p.p); err != nil {
		return err
	}
	p.out.Epoch, p.out.Resumed = p.p.Epoch, p.p.Resumed
	if err := p.l.Raise(ctx, p.p); err != nil {
		return err
	}
	for round := 0; ; round++ {
		if err := p.read(ctx); err != nil { // again: until the gates were raised, nodes could make jobs
			return err
		}
		if goals = p.goals(); len(goals) == 0 {
			break
		}
		if round == cluster.Rounds {
			return fmt.Errorf("promote %s: %d jobs kept changing, %s for one; promote it again", quoted(p.p.Generation), len(goals), goals[0].job)
		}
		if err := p.switchAll(ctx, goals); err != nil {
			return err
		}
	}
	p.countMade()
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.cancel(ctx); err != nil {
		return err
	}
	_, err = p.l.Promoted(ctx, p.p)
	return err
}

func (p *promoter) read(ctx context.Context) (err error) {
	p.known, err = p.i.known(ctx, p.l)
	return err
}

// done says whether there is nothing to promote, and no promotion under way that this call would outdate.
func (p *promoter) done(makers []string, goals []*goal) bool {
	c := p.known.control
	if len(goals) > 0 || c.Promoting != "" {
		return false
	}
	other := func(maker string) bool { return maker != p.p.Generation }
	return p.p.Pattern != "" || !other(c.Generation) && !slices.ContainsFunc(makers, other)
}

// goal is one job that is to be switched.
type goal struct {
	job    string
	stored *ledger.Stored // nil for one that nobody has yet
	want   *aside         // nil for one that the generation does not have
}

// goals are the jobs that are not the generation's yet.
func (p *promoter) goals() []*goal {
	k, generation := p.known, p.p.Generation
	p.out.LeftOut, p.out.LeftAlone = Names{}, Names{}
	wanted, left := p.wanted()
	p.out.LeftOut = left
	var goals []*goal
	has := make(map[string]bool, len(k.stored))
	for n := range k.stored {
		s := &k.stored[n]
		has[s.Job] = true
		if !p.matches(s.Job) {
			continue
		}
		now, readable := k.generationOf(s.Job)
		switch want := wanted[s.Job]; {
		case !readable || p.alone[s.Job]:
			p.out.LeftAlone.add(s.Job)
		case now == generation:
		case want != nil || p.p.Pattern == "":
			goals = append(goals, &goal{job: s.Job, stored: s, want: want})
		}
	}
	for job, want := range wanted {
		if !has[job] && !p.alone[job] {
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
	ok, _ := path.Match(p.p.Pattern, job) // checked before
	return ok
}

// wanted are the definitions to be promoted: those that living nodes of the generation have, or with Force all that are kept.
func (p *promoter) wanted() (wanted map[string]*aside, left Names) {
	kept := p.known.aside[p.p.Generation]
	held, _ := p.known.announced(p.p.Generation)
	wanted = make(map[string]*aside)
	for _, job := range slices.Sorted(maps.Keys(kept)) {
		switch a := kept[job]; {
		case !p.matches(job):
		case p.o.Force || slices.Contains(held[job], a.Digest):
			wanted[job] = a
		default:
			if now, _ := p.known.generationOf(job); now != p.p.Generation {
				left.add(job)
			}
		}
	}
	return wanted, left
}

// permitted are the goals, or why the promotion is refused.
func (p *promoter) permitted() ([]*goal, error) {
	k, generation := p.known, p.p.Generation
	refuse := func(format string, args ...any) ([]*goal, error) {
		return nil, fmt.Errorf("%w: promote %s: %s", ErrRefused, quoted(generation), fmt.Sprintf(format, args...))
	}
	if names := k.names; !slices.Contains(names, generation) {
		return refuse("there is no such generation; there are %s (`generations list`); start a node of it first, which goes on standby", some(each(names)))
	}
	held, unclear := k.announced(generation)
	if why := p.unmatched(held); why != "" {
		return refuse("%s", why)
	}
	switch nodes := k.alive(generation); {
	case p.o.Force:
	case len(nodes) == 0:
		return refuse("no node of it is alive, and nothing would run; start one first (or use --force, if you are about to)")
	case unclear > 0:
		return refuse("what %d of its %d nodes have cannot be read by this version, or was not announced yet; ask again in a few seconds, with the newest version", unclear, len(nodes))
	}
	var unsettled []string
	for job, digests := range held {
		now, stored := k.generationOf(job)
		if !p.matches(job) || stored && now == generation {
			continue
		}
		a := k.aside[generation][job]
		if a == nil || !p.o.Force && !slices.Contains(digests, a.Digest) {
			unsettled = append(unsettled, job)
		}
	}
	if len(unsettled) > 0 {
		slices.Sort(unsettled)
		return refuse("its nodes have not said yet how they would run %s; they do within seconds of their start, ask again then", some(unsettled))
	}
	return p.goals(), nil
}

// unmatched says that the pattern matches no job, or none of the generation; "" when it does.
func (p *promoter) unmatched(held map[string][]string) string {
	of, some := p.known.matching(p.matches, p.p.Generation, held)
	switch {
	case p.p.Pattern == "" || of:
		return ""
	case some:
		return fmt.Sprintf("it has no job that matches %s; `generations list` shows what it lacks", p.p.Pattern)
	}
	return fmt.Sprintf("no job matches %s; `jobs list` shows their names", p.p.Pattern)
}
