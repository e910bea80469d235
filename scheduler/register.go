package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// replaceTries is how often a replacement is tried against a ledger that keeps moving.
const replaceTries = 5

// superseded is why a job is outside when another definition is the stored one.
const superseded = "superseded"

// fact is what registering one job brought to light.
type fact struct {
	job        *job
	cursor     int64
	superseded bool
	stored     string // superseded: the stored definition's revision
}

// register stores the definitions of jobs, in batches by partition. A new job starts from now.
// Where another definition is stored, the newer revision decides, and between equal ones the one
// that registers later (fresh); an older one counts again when no other living node holds the
// stored one.
func (n *Node) register(ctx context.Context, list []*job, fresh bool) ([]fact, error) {
	byPart := make(map[int][]*job)
	for _, j := range list {
		byPart[j.part] = append(byPart[j.part], j)
	}
	facts := make([]fact, 0, len(list))
	for _, part := range byPart {
		for len(part) > 0 {
			size := min(len(part), ledger.BatchMax)
			got, err := n.registerBatch(ctx, part[:size], fresh)
			if err != nil {
				return nil, err
			}
			facts, part = append(facts, got...), part[size:]
		}
	}
	return facts, nil
}

func (n *Node) registerBatch(ctx context.Context, list []*job, fresh bool) ([]fact, error) {
	defs := make([]ledger.Definition, len(list))
	for i, j := range list {
		raw, err := json.Marshal(j.Definition())
		if err != nil {
			return nil, fmt.Errorf("definition of job %s: %w", j.Name, err)
		}
		defs[i] = ledger.Definition{Job: j.Name, Digest: j.digest, Revision: n.cfg.Revision, Text: raw}
	}
	answers, err := n.define(ctx, list, defs)
	if err != nil {
		return nil, err
	}
	facts := make([]fact, len(list))
	for i, j := range list {
		if facts[i], err = n.settleDefinition(ctx, j, defs[i], answers[i], fresh); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

// define asks once more, after a look at the clock, when Redis' clock is not what we believe.
func (n *Node) define(ctx context.Context, list []*job, defs []ledger.Definition) ([]ledger.Defined, error) {
	for try := 0; ; try++ {
		now := n.clock.now()
		for i, j := range list {
			after := now
			if last := time.UnixMilli(defs[i].Until); defs[i].WasDigest != "" && last.After(now) {
				after = last
			}
			defs[i].Cursor = millis(j.schedule.Next(after))
		}
		answers, err := n.ledger.Define(ctx, now.UnixMilli(), defs)
		if !errors.Is(err, ledger.ErrClock) || try == replaceTries {
			return answers, err
		}
		n.resample(ctx)
	}
}

// settleDefinition acts on one answer: it replaces the stored definition if ours decides.
func (n *Node) settleDefinition(ctx context.Context, j *job, def ledger.Definition, got ledger.Defined, fresh bool) (fact, error) {
	for range replaceTries {
		switch got.Word {
		case "created", "same", "replaced":
			if got.Word == "replaced" {
				n.log.Info("definition replaced", "job", j.Name, "schedule", j.Schedule, "next", time.UnixMilli(got.Cursor).UTC())
			}
			return fact{job: j, cursor: got.Cursor}, nil
		case "differs":
		default:
			return fact{}, fmt.Errorf("register job %s: entry: %w; update this node", j.Name, ledger.ErrForeign)
		}
		if !n.decides(j, got, fresh) {
			return fact{job: j, superseded: true, stored: got.Revision}, nil
		}
		replacement, err := n.replacement(j, def, got)
		if err != nil {
			return fact{}, err
		}
		answers, err := n.define(ctx, []*job{j}, []ledger.Definition{replacement})
		if err != nil {
			return fact{}, err
		}
		got = answers[0]
	}
	return fact{}, fmt.Errorf("register job %s: its entry kept moving while the definition was replaced; try again", j.Name)
}

func (n *Node) decides(j *job, stored ledger.Defined, fresh bool) bool {
	if n.cfg.Revision > stored.Revision || fresh && n.cfg.Revision == stored.Revision {
		return true
	}
	return !n.crowd.Load().announced(j.Name, stored.Digest, n.id)
}

// replacement is the compare-and-set that puts ours in the place of the stored definition: the
// old schedule's ticks up to now, which nobody will run any more, are recorded in it.
func (n *Node) replacement(j *job, def ledger.Definition, stored ledger.Defined) (ledger.Definition, error) {
	def.WasDigest, def.WasCursor, def.Until, def.Count = stored.Digest, stored.Cursor, stored.Last, 0
	if stored.Cursor == 0 {
		return def, nil
	}
	old, err := jobs.ParseDefinition(stored.Text)
	if err != nil {
		return def, fmt.Errorf("register job %s: its stored definition: %w; update this node, or remove the job", j.Name, err)
	}
	schedule, err := jobs.ParseSchedule(old.Schedule, old.TimeZone)
	if err != nil {
		return def, fmt.Errorf("register job %s: its stored schedule: %w; update this node, or remove the job", j.Name, err)
	}
	count, last := schedule.Count(time.UnixMilli(stored.Cursor), n.clock.now().Add(time.Millisecond))
	if count > 0 {
		def.Until, def.Count = millis(last), int64(count)
	}
	return def, nil
}

// expelled notes a job that the engine cannot claim until it is registered again.
func (n *Node) expelled(j *job, why string) {
	n.outsideMu.Lock()
	defer n.outsideMu.Unlock()
	n.outside[j] = why
}

// reregister tries again for the jobs this node had to leave: after a rollback the older
// definition counts again as soon as no living node holds the newer one.
func (n *Node) reregister(ctx context.Context) {
	n.outsideMu.Lock()
	var list []*job
	for j := range n.outside {
		list = append(list, j)
	}
	n.outsideMu.Unlock()
	if len(list) == 0 || time.Since(n.reregistered) < rosterTTL {
		return
	}
	n.reregistered = time.Now()
	err := n.ledger.Restore(ctx)
	var facts []fact
	if err == nil {
		facts, err = n.register(ctx, list, false)
	}
	if err != nil {
		n.health.fail(err)
		return
	}
	n.take(facts)
}

// take tells the engine what registering brought to light.
func (n *Node) take(facts []fact) {
	n.outsideMu.Lock()
	for _, f := range facts {
		if !f.superseded {
			delete(n.outside, f.job)
			continue
		}
		if n.outside[f.job] != superseded {
			n.log.Warn("job superseded: a newer definition is stored and a living node holds it; this node does not claim the job",
				"job", f.job.Name, "stored_revision", f.stored, "own_revision", n.cfg.Revision)
		}
		n.outside[f.job] = superseded
	}
	n.outsideMu.Unlock()
	n.engine.do(func() {
		for _, f := range facts {
			if f.superseded {
				f.job.superseded = true
				n.engine.agenda.drop(f.job)
				continue
			}
			n.engine.registered(f.job, f.cursor)
		}
	})
}
