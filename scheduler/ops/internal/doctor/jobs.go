package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// aheadMargin is how far ahead of Redis' clock ticks may be claimed, with some room.
const aheadMargin = 2 * time.Second

// ahead notes a job whose next tick is not the next one of its schedule.
func (d *doctor) ahead(s query.Stored, definition jobs.Definition) {
	schedule, err := definition.ParsedSchedule()
	if err != nil || schedule == nil || s.Cursor == 0 {
		return
	}
	next := schedule.Next(d.now.Add(aheadMargin))
	if next.IsZero() || s.Cursor <= next.UnixMilli() {
		return
	}
	tick := wire.Time(next)
	d.add("job_stands_still", Error, onJob, s.Job, fmt.Sprintf("it runs nothing until %s, though its schedule has a tick at %s: its cursor is ahead, as after a step of Redis' clock", at(s.Cursor), tick),
		fmt.Sprintf("`jobs rewind %s --to %s`", s.Job, tick))
}

// paused notes jobs that are paused for long, and jobs that were resumed by a clock that was ahead.
func (d *doctor) paused(ctx context.Context, all []query.Stored) error {
	slices.SortFunc(all, func(a, b query.Stored) int { return strings.Compare(a.Job, b.Job) })
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Job
	}
	pauses, err := operate.Pauses(ctx, d.l, names...)
	if err != nil {
		return err
	}
	for _, s := range all {
		p, noted := pauses[s.Job]
		if !noted && s.Pause.To != 0 {
			d.add("job_stands_still", Error, onJob, s.Job, "it was resumed, and its ticks up to "+at(s.Pause.To)+" are recorded as paused all the same, as after a step of Redis' clock",
				"`jobs resume "+s.Job+"`")
			continue
		}
		if d.now.Sub(time.UnixMilli(s.Pause.From)) <= pausedLong {
			continue
		}
		text := fmt.Sprintf("it is paused for more than %d days", int(pausedLong.Hours()/24))
		if p.Author != "" {
			text += ", by " + p.Author
			if p.Reason != "" {
				text += ": " + p.Reason
			}
		}
		d.add("job_paused_long", Warning, onJob, s.Job, text, "`jobs resume "+s.Job+"`, or remove it where it is configured")
	}
	return nil
}

// open reads the runs in flight of the named jobs.
func (d *doctor) open(ctx context.Context, names []string) ([]ledger.Run, error) {
	open, err := query.InFlight(ctx, d.l, names...) // of the jobs beside them too
	return slices.DeleteFunc(open, func(r ledger.Run) bool { return !slices.Contains(names, r.Job) }), err
}

// waiting notes jobs that are due and wait for an attempt that may start only later.
func (d *doctor) waiting(ctx context.Context, names []string) error {
	open, err := d.open(ctx, names)
	if err != nil {
		return err
	}
	for _, r := range open {
		if r.Pending() && r.ReservesJob && time.UnixMilli(r.Granted).Sub(d.now) > overdueAfter {
			d.add("job_stands_still", Warning, onJob, r.Job, fmt.Sprintf("its ticks wait for run %s, which may not start before %s", r.ID, at(r.Granted)),
				"if that is too late, `runs cancel "+r.ID+"`")
		}
	}
	return nil
}

// refusedEntry notes runs of the named jobs that do not start because a store refuses their guard
// or permit, or does not answer.
func (d *doctor) refusedEntry(ctx context.Context, names []string) error {
	open, err := d.open(ctx, names)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(r ledger.Run) bool { return r.IsOpenTick })
	_, waits, err := query.Progress(ctx, d.l, open)
	if err != nil {
		return err
	}
	for _, r := range open {
		w, some := waits[r.ID]
		if !some || !w.Refused {
			continue
		}
		cure := "mend what the text names; the run starts by itself then. `runs cancel " + r.ID + "` gives the tick up"
		if strings.Contains(w.Note, "redlock.Bootstrap") {
			cure = "`escapement locks bootstrap` with the `locks` of the nodes' configuration, once; the run starts by itself then"
		}
		d.add("run_refused", Error, onJob, r.Job, fmt.Sprintf("its run %s does not start since %s: it %s", r.ID, at(w.At), w.Note), cure)
	}
	return nil
}
