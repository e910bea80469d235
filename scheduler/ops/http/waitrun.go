package opshttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

const (
	waitsMost = 400 // requests that wait for a run at once
	waitsEach = 40  // of one caller, see callers
	// unseenEvery is how often a waiting request reads a run that the feed does not see, because it looks at the newest ones only.
	unseenEvery = 2 * time.Second
)

// runState is how the feed's last look has shown a run.
type runState int

const (
	runUnseen runState = iota // not among the newest runs
	runGoing
	runEnded
)

// waitRun is the run of that id when it has ended, or as it is when ctx ends. The feed looks once for all who wait; a run is read when a look
// shows its end or shows it no more, and every unseenEvery where no look shows it.
func (s *Server) waitRun(ctx context.Context, client *ops.Client, id string) (ops.RunView, error) {
	leave := s.feed.join()
	defer leave()
	for {
		shown, looked := s.feed.lastLook()
		v, err := client.GetRun(ctx, id)
		if err != nil && !errors.As(err, new(*ops.UnreachableError)) || v.Ended != nil {
			return v, err
		}
		if id = v.Run; !s.feed.changed(ctx, id, shown[id], looked) {
			return v, err
		}
	}
}

// join counts one more who waits for a run, until leave.
func (f *feed) join() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters++
	f.want()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiters--
	}
}

// lastLook is what the last look has shown, and a channel that the next one closes; nil when the feed has ended.
func (f *feed) lastLook() (shown map[string]runState, looked <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown, f.looked
}

// endLook wakes those who wait for runs.
func (f *feed) endLook(runs []ops.RunView) {
	shown := make(map[string]runState, len(runs))
	for _, v := range runs {
		shown[v.Run] = runGoing
		if v.Ended != nil {
			shown[v.Run] = runEnded
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = shown
	close(f.looked)
	f.looked = make(chan struct{})
}

// changed waits until the run is to be read again, and returns false when ctx ends before.
func (f *feed) changed(ctx context.Context, id string, was runState, looked <-chan struct{}) bool {
	unseen := time.NewTimer(unseenEvery)
	defer unseen.Stop()
	for {
		late := unseen.C
		if was != runUnseen && looked != nil {
			late = nil
		}
		select {
		case <-looked:
		case <-late:
			return true
		case <-ctx.Done():
			return false
		}
		var shown map[string]runState
		shown, looked = f.lastLook()
		is := shown[id]
		if is == runEnded || was == runGoing && is == runUnseen {
			return true
		}
		was = is
	}
}

// Wait is as ops.Client has it.
func (c *Client) WaitRun(ctx context.Context, id string) (v ops.RunView, err error) {
	q := parameters("wait_ms", strconv.FormatInt(waitMost.Milliseconds(), 10))
	for {
		var next ops.RunView
		_, err = c.do(ctx, http.MethodGet, "runs/"+seg(id), q, nil, &next)
		if errors.Is(err, errTooMany) && pause(ctx, waitAgain) {
			continue
		}
		if err != nil {
			return v, err
		}
		if v = next; v.Ended != nil {
			return v, nil
		}
		id = v.Run // it may have been handed back
	}
}

// waitAgain is after how long Wait asks a server again that has too many who wait.
const waitAgain = time.Second

// pause waits, and returns false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
