package schedtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// sink is the outside world: a log with a clock of its own and a guard that refuses stale tokens.
// It is independent of the ledger. Its clock steps when Redis' does, because Redis' clock decides
// whether a tick is early or late.
type sink struct {
	writes []audit.Write
	latest time.Time // the latest time that its clock has shown
	// The time that its clock showed just before its last step, and when that step was.
	before, stepped time.Time
	top             map[string]int64 // by fence, the greatest token seen
	beside          map[string]bool  // jobs whose runs may go on side by side: there each tick is a fence of its own
}

// fence names the runs whose tokens are compared with each other.
func (s *sink) fence(run *jobs.Run) string {
	fence := run.Job()
	if s.beside[run.Job()] || run.Trigger() == jobs.TriggerBackfill {
		fence += " " + run.Tick().String()
	}
	if run.Trigger() == jobs.TriggerBackfill {
		fence += " backfill"
	}
	if run.Shards() > 1 { // shards of a tick write in any order
		fence += fmt.Sprint(" shard ", run.Shard())
	}
	return fence
}

// sees records the time of the clock.
func (s *sink) sees(at time.Time) {
	if at.After(s.latest) {
		s.latest = at
	}
}

// steps records the time of the clock just before a step.
func (s *sink) steps(at time.Time) {
	s.sees(at)
	s.before, s.stepped = at, time.Now()
}

// write takes one line. A tick that has come by Redis' clock has come, though the clock be set back
// since.
func (s *sink) write(at time.Time, p *process, run *jobs.Run, phase audit.Phase, failed bool) audit.Write {
	s.sees(at)
	// A run that was granted ahead waits by its node's estimate, and no node can have noticed the
	// step yet.
	if since := time.Since(s.stepped); since <= claim.AheadMax {
		s.sees(s.before.Add(since))
	}
	if tick := run.Tick(); at.Before(tick) && !s.latest.Before(tick) {
		at = tick
	}
	w := audit.Write{
		No: len(s.writes) + 1, At: at.UTC(), Job: run.Job(), Tick: run.Tick(), Run: run.ID(), Token: run.Token(),
		Node: p.slot.name, Attempt: run.Attempt(), Try: run.Try(), Shard: run.Shard(), Shards: run.Shards(), Trigger: run.Trigger().String(), Phase: phase, Failed: failed,
	}
	if fence := s.fence(run); w.Token < s.top[fence] {
		w.Refused = true
	} else {
		s.top[fence] = w.Token
	}
	s.writes = append(s.writes, w)
	return w
}

// ErrStale is the error of a run whose first line the sink refused, because it had seen a greater
// token of the job: the job's function is not called.
var ErrStale = errors.New("the sink has seen a greater token of this job")

var errCrashed = errors.New("the process has crashed")

// call is a job's function at work.
type call struct {
	job     string
	tick    int64 // ms
	process *process
	ctx     context.Context
}

// wrap puts the evidence around a job's function: a line for the sink before and after. The process
// takes a moment for each step, and the moments differ, as they do anywhere.
func (p *process) wrap(j jobs.Job) jobs.Job {
	work := j.Func
	j.Func = func(ctx context.Context, run *jobs.Run) error {
		mortal, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		p.cluster.working.Add(1)
		defer p.cluster.working.Add(-1)
		defer context.AfterFunc(p.life, func() { cancel(errCrashed) })()
		if err := p.begin(ctx, run); err != nil {
			return err
		}
		err := errors.New("it panicked, or ended its goroutine")
		defer func() { p.end(ctx, run, err) }()
		err = work(mortal, run)
		return err
	}
	return j
}

// begin takes a run from its grant to the call of its function.
func (p *process) begin(ctx context.Context, run *jobs.Run) error {
	c, told := p.cluster, make(chan error, 1)
	sum := wire.Fold(wire.Fold(2, run.ID()), run.Job())
	c.mu.Lock()
	if ctx.Err() != nil { // the node looked at it this instant
		c.blame(audit.KindTold, run.Job(), "try %d of run %s is called under a context that has ended: %v", run.Try(), run.ID(), context.Cause(ctx))
	}
	c.from(p, sum, func() {
		c.strike("before", "start", p)
		if !p.stopped() && ctx.Err() != nil {
			c.note(p.slot.name, "%s is not called: %v", run.ID(), context.Cause(ctx))
			c.spared[run.ID()]++
			told <- context.Cause(ctx)
			return
		}
		// A process that was stopped here does not look at its context again before it writes.
		c.from(p, ^sum, func() { told <- c.started(ctx, p, run) })
	})
	c.mu.Unlock()
	select {
	case err := <-told:
		return err
	case <-p.life.Done():
		return errCrashed
	}
}

// started is the moment in which a run's first line reaches the sink.
func (c *cluster) started(ctx context.Context, p *process, run *jobs.Run) error {
	w := c.sink.write(c.redisTime(), p, run, audit.Start, false)
	c.note(p.slot.name, "%s", written(w))
	if r := c.runs[run.ID()]; r != nil {
		r.stage = max(r.stage, started)
	}
	c.seen["run by "+run.Trigger().String()]++
	c.overtaken(p, run)
	c.parted(p, run)
	c.ranOn(run.Job(), p.version)
	if w.Refused {
		c.seen["stale write refused"]++
		c.sink.write(c.redisTime(), p, run, audit.End, true) // the function goes no further
		return ErrStale
	}
	c.calls[run.ID()] = &call{job: run.Job(), tick: run.Tick().UnixMilli(), process: p, ctx: ctx}
	c.strike("after", "start", p)
	return nil
}

// ranOn counts which versions ran ticks, and jobs whose ticks were run by two.
func (c *cluster) ranOn(job string, version int) {
	c.seen[fmt.Sprintf("ran on version %d", version)]++
	before := c.versions[job]
	c.versions[job] |= 1 << version
	if before != 0 && before != c.versions[job] {
		c.seen["two versions ran ticks of one job"]++
	}
}

// overtaken counts ticks that ran on another node than the first one to claim them.
func (c *cluster) overtaken(p *process, run *jobs.Run) {
	first := c.askers[run.Job()+" "+strconv.FormatInt(run.Tick().UnixMilli(), 10)]
	if run.Shards() < 2 && run.Trigger() != jobs.TriggerManual && first != "" && first != p.slot.name {
		c.seen["tick taken over"]++
	}
}

// end takes a run from its function's return to the report.
func (p *process) end(ctx context.Context, run *jobs.Run, err error) {
	c, told := p.cluster, make(chan struct{})
	sum := wire.Fold(wire.Fold(3, run.ID()), run.Job())
	c.mu.Lock()
	c.from(p, sum, func() {
		delete(c.calls, run.ID())
		if errors.Is(context.Cause(ctx), locking.ErrLeaseLost) {
			c.seen["lease expired while running"]++
		}
		w := c.sink.write(c.redisTime(), p, run, audit.End, err != nil)
		if w.Refused {
			c.seen["stale write refused"]++
		}
		c.note(p.slot.name, "%s, %s", written(w), word(err))
		close(told)
	})
	c.mu.Unlock()
	select {
	case <-told:
	case <-p.life.Done():
	}
}

func word(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// written renders a line of the sink.
func written(w audit.Write) string {
	refused := ""
	if w.Refused {
		refused = ", REFUSED: stale token"
	}
	part := ""
	if w.Shards > 1 {
		part = fmt.Sprintf(" shard %d of %d", w.Shard, w.Shards)
	}
	return fmt.Sprintf("%s of %s: %s tick %s%s token %d%s", w.Phase, w.Run, w.Job, w.Tick.Format("15:04:05.000"), part, w.Token, refused)
}
