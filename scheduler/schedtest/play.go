package schedtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

const (
	// lastWords is how long nodes may take to stop.
	lastWords = time.Minute
	// patience is how long a plan waits for functions that ignore the end of their context.
	patience = 24 * time.Hour
)

// Result is the outcome of a simulation.
type Result struct {
	audit.Report
	// Digest names the history: of every message, reply, line of the sink and fault, with its
	// instant. The same plan gives the same digest.
	Digest string
	// Story is the history for people, a line for each event: seconds since the start, node, event.
	Story []string
	// Writes are the sink's lines.
	Writes []audit.Write
	// Seen counts events.
	Seen Counters
	// Idle are the faults of the plan that never struck.
	Idle []Fault
	// Words are the last lines that each process logged.
	Words map[string][]string

	evidence audit.Case // that was judged
}

// Run simulates a plan. If a promise was broken, or nothing ran, it fails the test with all
// findings and the story.
func Run(t *testing.T, p Plan) Result {
	t.Helper()
	r := Play(t, p)
	for _, f := range r.Idle {
		t.Logf("seed %d: never came to its point: %s", p.Seed, f)
	}
	if len(r.Findings) > 0 {
		t.Errorf("seed %d:\n%s", p.Seed, r)
	} else if r.Runs == 0 {
		t.Errorf("seed %d: nothing ran, so this shows nothing: is a tick due within For, and has a node the jobs' labels?", p.Seed)
	}
	return r
}

// Play simulates a plan in a synctest bubble of its own and returns the outcome. It fails the test
// only when the plan cannot be carried out. A job's function that never returns ends the whole test
// binary, because a bubble waits for its goroutines.
func Play(t *testing.T, p Plan) Result {
	t.Helper()
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		t.Fatal(err)
	}
	var r Result
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c := newCluster(p, server)
		if r, err = c.play(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// play runs the cluster from its start to the verdict.
func (c *cluster) play(ctx context.Context) (Result, error) {
	go c.wire.Run()
	for i, s := range c.nodeSlots {
		c.post(c.began.Add(time.Duration(i)*17*time.Millisecond), -1, uint64(i), func() { c.start(s) })
	}
	for i, tr := range c.plan.Triggers {
		c.post(c.began.Add(tr.When), -1, wire.Fold(4, tr.Job)+uint64(i), func() { c.pull(i, tr) })
	}
	for i, a := range c.plan.acts {
		c.post(c.began.Add(a.when), -1, wire.Fold(5, "act")+uint64(i), func() { a.do(c) })
	}
	if c.plan.Heal > 0 {
		c.post(c.began.Add(c.plan.Heal), -1, 0, c.heal)
	}
	<-time.After(c.plan.For)
	read := time.Now()
	if c.plan.last != nil {
		c.mu.Lock()
		c.plan.last(c)
		c.mu.Unlock()
	}
	c.finish()
	for _, p := range c.processes {
		p.kill()
	}
	for end := time.Now().Add(patience); c.working.Load() > 0 && time.Now().Before(end); {
		<-time.After(time.Second) // a bubble cannot end before all goroutines have
	}
	c.wire.Close()
	if c.plan.Heal > 0 {
		c.leftovers()
	}
	if c.plan.final != nil {
		c.mu.Lock()
		c.plan.final(c)
		c.mu.Unlock()
	}
	return c.judge(ctx, read)
}

// finish ends all processes: in peace when all faults were mended, else at once.
func (c *cluster) finish() {
	c.mu.Lock()
	c.over, c.ended = true, c.redisTime()
	for _, p := range c.processes {
		if !p.died.IsZero() {
			continue // long ago
		}
		if c.plan.Heal > 0 {
			p.leaving = true
			p.drain()
			c.disturbed = append(c.disturbed, audit.Disturbance{
				Span: audit.Span{From: time.Now(), Until: time.Now().Add(lastWords)}, What: string(Drain), Nodes: []string{p.slot.name},
			})
		} else {
			c.crash(p)
		}
	}
	all := c.processes
	c.mu.Unlock()
	for _, p := range all {
		timer := time.NewTimer(lastWords)
		select {
		case <-p.done:
		case <-timer.C:
			c.mu.Lock()
			c.blame(Leftover, "", "process %s does not end", p.name)
			c.mu.Unlock()
			<-p.done
		}
		timer.Stop()
	}
}

// judge holds the sink against the schedules and the books.
func (c *cluster) judge(ctx context.Context, read time.Time) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.err != nil && !p.dead {
			c.blame(Harness, "", "process %s ended: %v", p.name, p.err)
		}
	}
	r := Result{Digest: c.story.digest(), Story: c.story.lines, Writes: c.sink.writes, Seen: c.seen, Words: make(map[string][]string)}
	if !c.plan.unjudged {
		var err error
		if r.Report, r.evidence, err = c.verdict(ctx, read); err != nil {
			return Result{}, err
		}
	}
	r.Findings = append(r.Findings, c.wrong...)
	for _, a := range append(c.idle, c.armed...) {
		r.Idle = append(r.Idle, a.Fault)
	}
	c.seen["wrong wall clock read"] += int(c.wrongWalls.Load())
	for v, n := range r.Verdicts {
		c.seen["tick "+string(v)] += n
	}
	for _, p := range c.processes {
		r.Words[p.name] = p.words.all()
	}
	return r, nil
}

// verdict returns the audit's report, and its evidence.
func (c *cluster) verdict(ctx context.Context, read time.Time) (audit.Report, audit.Case, error) {
	stored, err := c.books(ctx)
	if err != nil {
		return audit.Report{}, audit.Case{}, fmt.Errorf("schedtest: read the books: %w", err)
	}
	c.countRecords(stored.books)
	known, err := c.known()
	if err != nil {
		return audit.Report{}, audit.Case{}, fmt.Errorf("schedtest: the audit's schedules: %w", err)
	}
	disturbed := slices.Clone(c.disturbed)
	c.survived(disturbed)
	for i := range disturbed {
		disturbed[i].Span = c.byRedis(disturbed[i].Span)
		if disturbed[i].Loses { // lost writes concern ticks on both sides of a step
			disturbed[i].From = disturbed[i].From.Add(-c.redis.widest())
			disturbed[i].Until = disturbed[i].Until.Add(c.redis.widest())
		}
	}
	read = c.byRedis(audit.Span{From: c.began, Until: read}).Until
	ended := c.byRedis(audit.Span{From: c.began, Until: time.Now()}).Until
	if len(c.sink.writes) > 0 && len(c.grants) == 0 {
		c.blame(Harness, "", "runs wrote, and no grant of any was seen on the wire: the simulation does not know what claims look like any more")
	}
	evidence := audit.Case{
		Jobs: known, Writes: c.judged(c.sink.writes), Grants: c.grants, Books: stored.of(known), Events: stored.events,
		Disturbed: append(disturbed, c.datedLate()...), Nodes: c.plan.names(), Read: read, Ended: ended,
		Within: c.within, Settle: c.settle, Skew: c.plan.Config.MaxSkew + 100*time.Millisecond,
		Crowded: c.plan.crowded(), Stepped: len(c.redis.steps) > 0, SetBack: c.wentBack(),
	}
	c.resumed(known)
	return audit.Check(evidence), evidence, nil
}

// judged leaves out the writes of jobs that are not judged.
func (c *cluster) judged(writes []audit.Write) []audit.Write {
	return slices.DeleteFunc(slices.Clone(writes), func(w audit.Write) bool { return slices.Contains(c.unjudged, w.Job) })
}

// resumed checks that after a cluster was healed each job ran again.
func (c *cluster) resumed(known []audit.Job) {
	if c.plan.Heal == 0 {
		return
	}
	from := c.byRedis(audit.Span{From: c.began, Until: c.began.Add(c.plan.Heal)}).Until
	until := c.byRedis(audit.Span{From: c.began, Until: c.began.Add(c.plan.For)}).Until.Add(-c.settle)
	for _, j := range known {
		if c.plan.crowded() || j.Eligible != nil && len(j.Eligible) == 0 || len(j.Pauses) > 0 {
			continue
		}
		if slices.ContainsFunc(j.Versions, func(v audit.Version) bool { return v.Definition.MaxRuns > 0 }) {
			continue // it may have ended; the audit judges that
		}
		due := 0
		for _, v := range j.Versions {
			span := audit.Span{From: from, Until: until}
			if v.Certain.From.After(from) {
				span.From = v.Certain.From
			}
			if v.Schedule != nil && !v.Certain.From.IsZero() && v.Certain.Until.After(until) {
				n, _ := v.Schedule.Count(span.From, span.Until)
				due += n
			}
		}
		ran := slices.ContainsFunc(c.sink.writes, func(w audit.Write) bool { return w.Job == j.Name && w.At.After(from) })
		if due > 0 && !ran {
			c.blame(audit.KindLost, j.Name, "%d ticks came due after all faults had ended, and none of it ran", due)
		}
	}
}

// lastLines is how many lines of each process's log String includes.
const lastLines = 12

// String returns the findings, the story, and the last log lines of each process.
func (r Result) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	b.WriteString("\n   seconds  node   what happened\n")
	for _, line := range folded(r.Story) {
		fmt.Fprintln(&b, line)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Words)) {
		lines := r.Words[name]
		fmt.Fprintf(&b, "\n%s said last:\n", name)
		for _, line := range lines[max(0, len(lines)-lastLines):] {
			fmt.Fprintln(&b, "  "+line)
		}
	}
	return b.String()
}
