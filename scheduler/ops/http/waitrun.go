package opshttp

import (
	"cmp"

	"context"
	"errors"
	"net/http"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

const (
	waitsMost = 400 // requests that wait for a run at once
	waitsEach = 40  // of one caller, see callers
	// unseenEvery is how often a waiting request reads a run that the feed does not see, because
	// the feed reads the newest runs only.
	unseenEvery = 2 * time.Second
)

// runState is how the feed's last look has shown a run.
type runState int

const (
	runUnseen runState = iota // not among the newest runs
	runGoing
	runEnded
)

// run answers one run; with a wait, when it has ended or that time is over.
func (s *Server) run(r *http.Request, client *ops.Client, in *ops.RunQuery) (v ops.RunView, err error) {
	ctx := r.Context()
	if in.Wait == 0 {
		return client.GetRun(ctx, in.Run)
	}
	end, err := s.waits.begin(s.callerOf(r))
	if err != nil {
		return v, err
	}
	defer end()
	waiting, cancel := context.WithTimeout(ctx, in.Wait)
	defer cancel()
	v, err = s.waitRun(waiting, client, in.Run)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return client.GetRun(ctx, cmp.Or(v.Run, in.Run)) // it may have been handed back
	}
	return v, err
}

// output answers the last that a run wrote, as text.
func (s *Server) output(w http.ResponseWriter, r *http.Request) {
	v, err := s.clientOf(r).GetRun(r.Context(), r.PathValue("run"))
	if err != nil && !errors.As(err, new(*ops.UnreachableError)) {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	writeBody(w, r, "text/plain; charset=utf-8", []byte(v.Output))
}

// waitRun is the run of an id when it has ended, or as it is when ctx ends. The feed looks once for
// all waiting requests; a run is read when a look shows its end or shows it no more, and every
// unseenEvery where no look shows it.
func (s *Server) waitRun(ctx context.Context, client *ops.Client, id string) (ops.RunView, error) {
	leave := s.feed.join()
	defer leave()
	for {
		shown, looked := s.feed.lastLook()
		v, err := client.GetRun(ctx, id)
		if err != nil && !errors.As(err, new(*ops.UnreachableError)) || !v.Ended.IsZero() {
			return v, err
		}
		if id = v.Run; !s.feed.changed(ctx, id, shown[id], looked) {
			return v, err
		}
	}
}

// join counts one more request that waits for a run, until leave.
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

// lastLook is the runs of the last look, and a channel that the next look closes; nil when the feed
// has ended.
func (f *feed) lastLook() (shown map[string]runState, looked <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown, f.looked
}

// endLook wakes the requests that wait for runs.
func (f *feed) endLook(runs []ops.RunView) {
	shown := make(map[string]runState, len(runs))
	for _, v := range runs {
		shown[v.Run] = runGoing
		if !v.Ended.IsZero() {
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
