package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
)

const (
	// tries is how often a message is sent in a round, with firstPause and then four times as long
	// between; roundPause is the wait before the next round.
	tries      = 3
	firstPause = 2 * time.Second
	roundPause = time.Minute
	// webhookTime and commandTime bound one try.
	webhookTime = 10 * time.Second
	commandTime = 30 * time.Second
	// finishTime is how long a stopping notifier waits for messages that are being sent.
	finishTime = 10 * time.Second
)

var errNoAnswer = errors.New("no answer in time")

// result is how a round of tries ended.
type result struct {
	target string
	id     string
	err    error
}

// post sends messages, one at a time to each target, so that a hanging target holds up no other.
type post struct {
	ctx     context.Context
	cfg     Config
	callers *callers
	results chan result
	busy    map[string]bool      // by target
	next    map[string]time.Time // no round before
	sending sync.WaitGroup
	stop    context.CancelFunc
}

func newPost(ctx context.Context, cfg Config, callers *callers) *post {
	ctx, stop := context.WithCancel(ctx)
	return &post{
		ctx: ctx, cfg: cfg, callers: callers, results: make(chan result, len(cfg.Targets)), busy: make(map[string]bool), next: make(map[string]time.Time), stop: stop,
	}
}

// send begins a round of tries, unless one goes on or it is too early.
func (p *post) send(t Target, m Message) {
	if p.busy[t.Name] || time.Now().Before(p.next[t.Name]) {
		return
	}
	p.busy[t.Name] = true
	p.sending.Go(func() { p.results <- result{t.Name, m.ID, p.callers.round(p.ctx, t, m)} })
}

// done notes the end of a round.
func (p *post) done(r result) {
	p.busy[r.target] = false
	if r.err != nil {
		p.next[r.target] = time.Now().Add(roundPause)
	}
}

// any reports whether a message is being sent.
func (p *post) any() bool {
	return slices.Contains(slices.Collect(maps.Values(p.busy)), true)
}

// wait cancels the messages that are being sent. It takes as long as a target may take to return.
func (p *post) wait() {
	p.stop()
	p.sending.Wait()
}

// round tries to send a message some times.
func (c *callers) round(ctx context.Context, t Target, m Message) (err error) {
	pause := firstPause
	for try := range tries {
		if try > 0 && !wait.For(ctx, pause) {
			return err
		}
		if try > 0 {
			pause *= 4
		}
		if err = c.call(ctx, t, m); err == nil || ctx.Err() != nil || errors.Is(err, errLeft) {
			return err
		}
	}
	return err
}

// Send sends a message to the target once. Errors have the host of a webhook, and no other part of
// its URL.
func (t Target) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.tryTime(), errNoAnswer)
	defer cancel()
	switch {
	case t.Webhook != nil:
		return t.Webhook.send(ctx, m)
	case len(t.Command) > 0:
		return runCommand(ctx, t.Command, m)
	default:
		return called(ctx, t.Func, m)
	}
}

// tryTime bounds one try.
func (t Target) tryTime() time.Duration {
	if len(t.Command) > 0 {
		return commandTime
	}
	return webhookTime
}

// called calls a target's function. A panic is its error, and not the node's end.
func called(ctx context.Context, f Func, m Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function panicked: %v", p)
		}
	}()
	return f(ctx, m)
}
