package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// RunStatus is the status of runs in flight at Redis' time Now, ms.
type RunStatus struct {
	Now   int64
	Waits map[string]string // by a pending run's id, the cause of its wait: the end of a sentence that begins with "pending"
}

// Status reads why runs wait.
func Status(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, runs []Run) (s RunStatus, err error) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Lease != nil }) {
		return s, nil
	}
	now, err := l.Now(ctx)
	if err != nil {
		return s, err
	}
	s.Now = now.UnixMilli()
	var wait []string
	for _, r := range runs {
		if r.Lease != nil && r.Lease.Pending() && !slices.Contains(wait, r.Lease.Job) {
			wait = append(wait, r.Lease.Job)
		}
	}
	if len(wait) == 0 {
		return s, nil
	}
	some, err := Around(ctx, l, wait)
	if err != nil && !unreachable(err) {
		return s, err
	}
	all := some.Jobs
	held, err := Holders(ctx, l, roster, some)
	if err != nil {
		return s, err
	}
	s.Waits = make(map[string]string)
	for _, r := range runs {
		if r.Lease == nil || !r.Lease.Pending() {
			continue
		}
		if at, known := slices.BinarySearchFunc(all, r.Lease.Job, func(s query.Stored, job string) int { return strings.Compare(s.Job, job) }); known {
			s.Waits[r.Lease.ID] = waitsFor(*r.Lease, all[at], held[r.Lease.Job], s.Now)
		}
	}
	return s, nil
}

// waitsFor names the longest lasting cause of the wait first.
func waitsFor(p ledger.Run, s query.Stored, h Holding, now int64) string {
	d, err := jobs.ParseDefinition(s.Definition)
	switch {
	case p.Granted > now:
		return " until " + time.UnixMilli(p.Granted).UTC().Format(spec.TimeLayout)
	case s.Err != nil || err != nil:
		return ": job cannot be read by this version"
	case h.Orphan:
		return ": no living node holds the job"
	case h.Owner == "":
		return ": no living node can run the job"
	case p.Trigger == jobs.TriggerBackfill.String():
		if s.Pause.Holds(now) {
			return ": job is paused"
		}
	case (p.ReservesJob || p.Trigger == jobs.TriggerAfter.String()) && p.Request == "" && p.TickID == "" && s.Pause.Holds(now):
		// an operator's run or attempt, and the attempts of such a run, do not wait for the resume
		return ": job is paused"
	case d.Overlap != jobs.OverlapAllow && s.HolderRun != "" && s.HolderRun != p.ID && s.HolderRun != p.TickID:
		return ": job is held by run " + s.HolderRun
	}
	return ""
}
