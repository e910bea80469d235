package failover

import (
	"context"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// definition is what an assertion needs of a job's definition.
type definition struct {
	digest   string
	schedule *jobs.Schedule // nil for a job that follows other jobs
	shards   int
	params   []string
}

// ownDefinition is the definition by which a run was granted.
func ownDefinition(c ownRun) definition {
	j := c.grant.Job
	return definition{j.Digest, j.Schedule, j.Shards, j.Params}
}

// assertByStored asserts runs again that were refused because another definition of their job is stored: in a deploy, nodes of the other
// version may register their definition first after a loss. Where the stored schedule has the tick too, the run is restored by that one,
// and its answer replaced. Else the tick cannot be granted again.
func (es *Epochs) assertByStored(ctx context.Context, l *ledger.Ledger, batch []ownRun, answers []epoch.Asserted, last bool) error {
	stored := make(map[string]*definition)
	for i, a := range answers {
		if a.Status == epoch.OtherDef {
			stored[batch[i].grant.Lease.Job] = nil
		}
	}
	if err := es.readDefinitions(ctx, stored); err != nil {
		return err
	}
	var list []epoch.Assertion
	var places []int
	for i, a := range answers {
		//guard:other-definition P1 a run of another definition than the stored one is asserted by that, so that its tick is not granted again
		if d := stored[batch[i].grant.Lease.Job]; a.Status == epoch.OtherDef && d.hasTick(batch[i].grant.Lease.Tick) {
			asserted := es.assertion(batch[i], *d, last)
			if asserted.Run.Next != 0 {
				asserted.Run.Next = work.Millis(d.schedule.Next(time.UnixMilli(asserted.Run.Tick)))
			}
			list, places = append(list, asserted), append(places, i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	again, err := epoch.Reassert(ctx, l, es.Clock.LastRead().UnixMilli(), list)
	for k, a := range again {
		answers[places[k]] = a
	}
	return err
}

// readDefinitions reads the stored definitions of jobs. A definition that cannot be read stays nil.
func (es *Epochs) readDefinitions(ctx context.Context, into map[string]*definition) error {
	if len(into) == 0 {
		return nil
	}
	names := make([]string, 0, len(into))
	for name := range into {
		names = append(names, name)
	}
	found, err := query.Named(ctx, es.Ledger, names)
	if err != nil {
		return err
	}
	for _, s := range found {
		d, err := jobs.ParseDefinition(s.Definition)
		if err != nil {
			continue // a newer version's: the nodes of that version know the job
		}
		if schedule, err := d.ParsedSchedule(); err == nil {
			into[d.Name] = &definition{s.Digest, schedule, max(d.Shards, 1), d.Params}
		}
	}
	return nil
}

// hasTick reports whether an instant, ms, is a tick of the schedule.
func (d *definition) hasTick(at int64) bool {
	return d != nil && d.schedule != nil && d.schedule.Next(time.UnixMilli(at-1)).UnixMilli() == at
}
