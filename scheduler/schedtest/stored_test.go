package schedtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestStored plays random plans in which jobs are stored, changed and deleted at run time, beside
// the nodes' own jobs.
func TestStored(t *testing.T) {
	s := &suite{name: "TestStored", plan: storedPlan, seeds: 5, enough: 200, shows: storedShow}
	s.run(t)
}

// storedShow are the events that enough seeds must show.
var storedShow = []string{
	"stored: put", "stored: changed", "stored: deleted", "stored: refused", "stored: ran", "stored: runs at the end",
	"tick of shards", "stale write refused", "run handed back", "tick taken over",
}

// storedNames are the jobs that come and go.
var storedNames = []string{"stored-0", "stored-1", "stored-2", "stored-3"}

// storedPlan is a plan of TestSim whose Redis loses nothing, so that no tick may run twice.
func storedPlan(seed uint64) Plan {
	p := planOf(seed)
	p.Faults = slices.DeleteFunc(p.Faults, Fault.loses)
	p.handlers = map[string]jobs.Func{"quick": patient(30 * time.Millisecond), "slow": patient(2500 * time.Millisecond)}
	p.unjudgedJobs = storedNames // their schedules change at instants that each node learns of by itself
	d := &dice{rand.New(rand.NewPCG(seed, 0x5703ed))}
	end := p.For - 2*second
	if p.Heal > 0 {
		end = p.Heal
	}
	for range 6 + d.IntN(20) {
		when := d.between(500*time.Millisecond, end)
		j := jobs.Job{
			Name: pick(d, storedNames), Handler: pick(d, []string{"quick", "quick", "slow", "nobody"}), TTL: 3 * second,
			Schedule: pick(d, []string{"* * * * * *", "@every 700ms", "*/2 * * * * *", "@every 3s"}), Shards: 1 + d.IntN(2), Overlap: pick(d, []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue}),
		}
		gone := d.IntN(4) == 0
		p.acts = append(p.acts, act{when, func(c *cluster) {
			word := "Redis is away"
			if c.redis.up {
				word = c.store(j, gone)
			}
			c.seen["stored: "+word]++
			c.note("hand", "stored job %s of %s: %s", j.Name, j.Schedule, word)
		}})
	}
	mark := 0 // how many lines there were ten seconds before the end
	p.acts = append(p.acts, act{p.For - 10*second, func(c *cluster) { mark = len(c.sink.writes) }})
	p.last, p.final = func(c *cluster) {
		if p.Heal > 0 && len(c.redis.steps) == 0 { // after a step back, jobs wait for their cursors
			c.storedRun(c.sink.writes[mark:])
		}
	}, (*cluster).storedOnce
	return p
}

// store puts or deletes a stored job, over a connection of its own.
func (c *cluster) store(j jobs.Job, gone bool) (word string) {
	err := c.beside(func(l *ledger.Ledger, in *ops.Client) error {
		names, err := catalog.Names(context.Background(), l)
		_, is := names[j.Name]
		switch {
		case err != nil:
		case gone && !is:
			word = "none there"
		case gone: // DeleteJob would wait for the nodes
			word = "deleted"
			_, err = catalog.Apply(context.Background(), l, []catalog.Change{{Job: j.Name}})
		default:
			if word = "put"; is {
				word = "changed"
			}
			_, err = in.PutJob(context.Background(), j, ops.PutOptions{})
		}
		return err
	})
	if err != nil {
		word = wordOf(err)
	}
	return word
}

// storedRun checks that the jobs stored at the end, and only these, wrote lines in the last ten
// seconds. All faults were mended long before, and each job ticks every few seconds.
func (c *cluster) storedRun(lately []audit.Write) {
	var left map[string]int64
	err := c.beside(func(l *ledger.Ledger, _ *ops.Client) (err error) {
		left, err = catalog.Names(context.Background(), l)
		return err
	})
	if err != nil {
		c.blame(Harness, "", "the catalog: %v", err)
	}
	for _, name := range storedNames {
		stored := left[name] > 0
		ran := slices.ContainsFunc(lately, func(w audit.Write) bool { return w.Job == name })
		switch {
		case stored && !ran:
			c.blame(audit.KindLost, name, "is stored, and has not run for ten seconds")
		case !stored && ran:
			c.blame(audit.KindUnwanted, name, "is not stored any more, and runs")
		case stored:
			c.seen["stored: runs at the end"]++
		}
	}
}

// storedOnce expects each attempt of a tick of a stored job to have run once, and the books to
// close.
func (c *cluster) storedOnce() {
	ran := make(map[string]audit.Write)
	for _, w := range c.sink.writes {
		if w.Phase != audit.Start || w.Refused || !slices.Contains(storedNames, w.Job) {
			continue
		}
		c.seen["stored: ran"]++
		key := fmt.Sprint(w.Job, " ", w.Tick, " shard ", w.Shard, " attempt ", w.Attempt)
		if before, twice := ran[key]; twice {
			c.blame(audit.KindDouble, w.Job, "%s ran on %s and on %s", key, before.Node, w.Node)
		}
		ran[key] = w
	}
	err := c.beside(func(_ *ledger.Ledger, in *ops.Client) error {
		books, err := in.Verify(context.Background(), ops.VerifyFilter{})
		for _, v := range books.Violations {
			c.blame(audit.KindBooks, v.Job, "%s", v.What)
		}
		return err
	})
	if err != nil {
		c.blame(Harness, "", "the books: %v", err)
	}
}
