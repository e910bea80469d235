package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Holding says who holds a job.
type Holding struct {
	Owner  string // the living node that goes first, "" when none can run the job
	NoNode string // why none can, "" when one can
	Orphan bool   // no living node of its generation holds it, in whatever definition, that is not on standby
	// Living nodes that hold another definition, by name: of the job's generation, and of another one.
	Superseded, Standby []string
}

// Holders takes all jobs there are: who goes first for one depends on the others.
func Holders(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, all []ledger.Stored) (map[string]Holding, error) {
	around, members, _, err := cluster.ReadRoster(ctx, l, roster, nil, partitions(l, all)...)
	if err != nil {
		return nil, err
	}
	c := around.Awake(members)
	held := make(map[string]Holding, len(all))
	var list []*work.Job
	for _, s := range all {
		h := Holding{Orphan: !c.Knows(s.Job)}
		if d, err := jobs.ParseDefinition(s.Definition); err == nil { // else whoever shows the job says what is wrong with it
			list = append(list, &work.Job{Job: d.Job(), Digest: s.Digest})
			for _, m := range members {
				switch digest, _ := around.Sets[m.Set].Digest(s.Job); {
				case digest == "" || digest == s.Digest:
				case m.Generation == d.Generation:
					h.Superseded = append(h.Superseded, m.Name)
				default:
					h.Standby = append(h.Standby, m.Name)
				}
			}
			slices.Sort(h.Superseded)
			slices.Sort(h.Standby)
			holders := c.Digests(s.Job)
			h.Orphan = h.Orphan || holders != nil && !slices.Contains(holders, s.Digest) && len(h.Superseded) == 0
		}
		held[s.Job] = h
	}
	firsts := c.Firsts(list)
	for _, j := range list {
		h := held[j.Name]
		if first, some := firsts[j]; some {
			h.Owner = first.Name
		} else {
			h.NoNode = noNode(c, j, h)
		}
		held[j.Name] = h
	}
	return held, nil
}

// noNode says why none of the living nodes can run a job.
func noNode(c *cluster.View, j *work.Job, h Holding) string {
	switch held := c.Digests(j.Name); {
	case slices.Contains(held, j.Digest) && !c.Runs(j.Name, j.Digest, j.Labels):
		return "no living node that holds it has its labels"
	case slices.Contains(held, j.Digest):
		return "the living nodes that can run it are about to end"
	case len(h.Standby) > 0:
		return "no living node of its generation holds it"
	case len(held) > 0:
		return "no living node holds the stored definition"
	}
	return "no living node holds it"
}

// HeldBy are the names of the living nodes that hold a job and may register it, in whatever definition, draining ones too. unclear counts
// the nodes of which it cannot be read.
func HeldBy(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, job string) (names []string, unclear int, err error) {
	around, members, foreign, err := cluster.ReadRoster(ctx, l, roster, nil, l.Partition(job))
	if err != nil {
		return nil, 0, err
	}
	for _, n := range around.Awake(members).Nodes {
		digest, known := around.Sets[n.Set].Digest(job)
		if digest != "" {
			names = append(names, cmp.Or(n.Name, n.ID))
		}
		if !known {
			unclear++
		}
	}
	slices.Sort(names)
	return names, unclear + foreign, nil
}

// Idle is how many jobs a node holds and does not claim: another definition is stored, of its generation or of another one.
type Idle struct{ Superseded, Standby int }

// IdleJobs counts them for each set of definitions; beside an UnreachableError, among the jobs that are heard.
func IdleJobs(ctx context.Context, l *ledger.Ledger, roster *roster.Roster) (map[string]Idle, error) {
	all, left := l.Jobs(ctx)
	if left != nil && !errors.As(left, new(*ledger.UnreachableError)) {
		return nil, left
	}
	around, members, _, err := cluster.ReadRoster(ctx, l, roster, nil, partitions(l, all)...)
	if err != nil {
		return nil, err
	}
	generation := make(map[string]string) // of a set: its digests differ from those of another generation
	for _, m := range members {
		generation[m.Set] = m.Generation
	}
	idle := make(map[string]Idle)
	for _, s := range all {
		d, err := jobs.ParseDefinition(s.Definition)
		if s.Err != nil || err != nil {
			continue
		}
		for set, held := range around.Sets {
			n := idle[set]
			switch digest, _ := held.Digest(s.Job); {
			case digest == "" || digest == s.Digest:
			case d.Generation == generation[set]:
				n.Superseded++
			default:
				n.Standby++
			}
			idle[set] = n
		}
	}
	return idle, left
}

// partitions are those that have some of these jobs.
func partitions(l *ledger.Ledger, all []ledger.Stored) (parts []int) {
	for _, s := range all {
		parts = append(parts, l.Partition(s.Job))
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// Standing is how runs in flight stand by Redis' time Now, ms.
type Standing struct {
	Now   int64
	Waits map[string]string // what keeps a pending run from being granted, by its id: the end of a sentence that begins with "pending"
}

// Stand looks how runs stand. all are the jobs, read before the runs.
func Stand(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, all []ledger.Stored, runs []Run) (s Standing, err error) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Lease != nil }) {
		return s, nil
	}
	now, _, err := l.Time(ctx)
	if err != nil {
		return s, err
	}
	s.Now = now.UnixMilli()
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Lease != nil && r.Lease.Pending() }) {
		return s, nil
	}
	held, err := Holders(ctx, l, roster, all)
	if err != nil {
		return s, err
	}
	s.Waits = make(map[string]string)
	for _, r := range runs {
		if r.Lease == nil || !r.Lease.Pending() {
			continue
		}
		if at, known := slices.BinarySearchFunc(all, r.Lease.Job, func(s ledger.Stored, job string) int { return strings.Compare(s.Job, job) }); known {
			s.Waits[r.Lease.Run] = waitsFor(*r.Lease, all[at], held[r.Lease.Job], s.Now)
		}
	}
	return s, nil
}

// waitsFor names first what would keep the run longest.
func waitsFor(p ledger.Lease, s ledger.Stored, h Holding, now int64) string {
	d, err := jobs.ParseDefinition(s.Definition)
	switch {
	case p.Granted > now:
		return " until " + time.UnixMilli(p.Granted).UTC().Format("2006-01-02T15:04:05.000Z")
	case s.Err != nil || err != nil:
		return ": job cannot be read by this version"
	case h.Orphan:
		return ": no living node holds the job"
	case h.Owner == "":
		return ": no living node can run the job"
	case (p.Holds || p.Trigger == jobs.TriggerAfter.String()) && p.Request == "" && p.Of == "" && s.Pause.Holds(now):
		// what somebody asked for, a run or an attempt, and the attempts of such a run do not wait for it
		return ": job is paused"
	case d.Overlap != jobs.OverlapAllow && s.Open != "" && s.Open != p.Run && s.Open != p.Of:
		return ": job is held by run " + s.Open
	}
	return ""
}
