package scheduler

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// hooksQueue is how many events may wait for the hooks.
	hooksQueue = 1024
	// hooksGrace is how long a stopped node waits for its hooks to handle the queued events.
	hooksGrace = 2 * time.Second
)

// events passes the node's events to the hooks. Its methods may be called from any goroutine, and
// on nil. They do not block, and cost nothing for a hook that is nil.
type events struct {
	hooks   Hooks
	node    string
	clock   *lane.Clock
	log     *slog.Logger
	queue   chan func()  // nil without hooks
	missing atomic.Int64 // dropped, or its hook panicked
	full    atomic.Bool  // it was logged that the queue is full
	broken  atomic.Bool  // it was logged that a hook panicked
}

func newEvents(h *Hooks, node string, c *lane.Clock, log *slog.Logger) *events {
	e := &events{node: node, clock: c, log: log}
	if h != nil {
		e.hooks, e.queue = *h, make(chan func(), hooksQueue)
	}
	return e
}

// run serves the hooks until ctx ends and the queue is empty. It gives up on a hook that does not
// return by then; its goroutine ends when the hook does.
func (e *events) run(ctx context.Context) {
	if e.queue == nil {
		return
	}
	ended := make(chan struct{})
	go e.serve(ctx, ended)
	<-ctx.Done()
	if wait.Within(ended, hooksGrace) {
		return
	}
	left := 0
	for ; e.next() != nil; left++ {
		e.missing.Add(1)
	}
	e.log.Warn("the node stops without its hooks: they did not get through the events in time", "left", left, "waited", hooksGrace)
}

// serve calls the hooks until ctx ends and the queue is empty.
func (e *events) serve(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	for ctx.Err() == nil {
		select {
		case call := <-e.queue:
			e.call(call)
		case <-ctx.Done():
		}
	}
	for call := e.next(); call != nil; call = e.next() {
		e.call(call)
	}
}

// next is the oldest queued event, nil when there is none.
func (e *events) next() func() {
	select {
	case call := <-e.queue:
		return call
	default:
		return nil
	}
}

// call calls a hook. It counts a panic, and logs the first one.
func (e *events) call(hook func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		e.missing.Add(1)
		if !e.broken.Swap(true) {
			e.log.Error("a hook panicked; mend it. Further panics are only counted, see Node.HooksDropped", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// post queues a hook's call, or drops it.
func (e *events) post(call func()) {
	select {
	case e.queue <- call:
		return
	default:
	}
	e.missing.Add(1)
	if !e.full.Swap(true) {
		e.log.Warn("the hooks are slower than the events; some are dropped, see Node.HooksDropped", "queue", hooksQueue)
	}
}

func (e *events) Due(job string, tick int64) {
	if e == nil || e.hooks.Due == nil {
		return
	}
	hook, ev := e.hooks.Due, TickEvent{Job: job, Tick: time.UnixMilli(tick).UTC(), Node: e.node}
	e.post(func() { hook(ev) })
}

func (e *events) Claimed(l ledger.Run) {
	if e == nil || e.hooks.Claimed == nil {
		return
	}
	e.postRun(e.hooks.Claimed, l, e.clock.Now())
}

func (e *events) Started(l ledger.Run, at time.Time) {
	if e == nil || e.hooks.Started == nil {
		return
	}
	e.postRun(e.hooks.Started, l, at)
}

// LeaseLost gets the time at which the run was started, as Settled does.
func (e *events) LeaseLost(l ledger.Run, started time.Time) {
	if e == nil || e.hooks.LeaseLost == nil {
		return
	}
	e.postRun(e.hooks.LeaseLost, l, started)
}

// Stalled gets the time at which the run was started, as LeaseLost does.
func (e *events) Stalled(l ledger.Run, started time.Time) {
	if e == nil || e.hooks.Stalled == nil {
		return
	}
	e.postRun(e.hooks.Stalled, l, started)
}

func (e *events) postRun(hook func(RunEvent), l ledger.Run, at time.Time) {
	ev := e.about(l, at)
	e.post(func() { hook(ev) })
}

func (e *events) Settled(l ledger.Run, r settle.Report, recorded bool) {
	if e == nil || e.hooks.Settled == nil {
		return
	}
	hook, ev := e.hooks.Settled, SettledEvent{
		RunEvent: e.about(l, time.UnixMilli(r.Started)), Outcome: r.Outcome, Reason: r.Reason, Error: r.Error,
		Duration: time.Duration(r.Ended-r.Started) * time.Millisecond, Tries: r.Tries, Recorded: recorded,
	}
	e.post(func() { hook(ev) })
}

func (e *events) Abandoned(l ledger.Run) {
	if e == nil || e.hooks.Abandoned == nil {
		return
	}
	hook, ev := e.hooks.Abandoned, AbandonedEvent{RunEvent: e.about(l, time.UnixMilli(l.Granted)), Holder: l.NodeName}
	e.post(func() { hook(ev) })
}

func (e *events) Skipped(job string, p ledger.SkippedRange) {
	if e == nil || e.hooks.Skipped == nil {
		return
	}
	hook, ev := e.hooks.Skipped, SkippedEvent{
		Job: job, First: time.UnixMilli(p.First).UTC(), Last: time.UnixMilli(p.Last).UTC(), Count: p.Count,
		Outcome: p.Outcome, Reason: p.Reason, Node: e.node,
	}
	e.post(func() { hook(ev) })
}

func (e *events) Superseded(job, why string) {
	if e == nil || e.hooks.Superseded == nil {
		return
	}
	hook, ev := e.hooks.Superseded, JobEvent{Job: job, Why: why, Node: e.node}
	e.post(func() { hook(ev) })
}

// about describes a run for an event; at is when it was granted or started.
func (e *events) about(l ledger.Run, at time.Time) RunEvent {
	tick := time.UnixMilli(l.Tick).UTC()
	return RunEvent{
		Job: l.Job, Tick: tick, Run: l.ID, Shard: l.Shard, Shards: l.Shards, Attempt: l.Attempt, Token: l.Token, Node: e.node,
		Trigger: work.TriggerOf(l), Lag: max(0, at.Sub(tick)),
	}
}
