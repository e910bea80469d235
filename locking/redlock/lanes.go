package redlock

import (
	"context"
	"sync"
)

// lanes keep the order of this driver's acquisitions and releases of one lock at
// each master. Callers go on when a majority has answered, and what they left
// under way to the others travels over several connections: a release could
// arrive before what it takes back, or an acquisition after the next holder has
// come and gone.
type lanes struct {
	mu   sync.Mutex
	name map[string]*lane
}

// lane is where the calls for one lock stand.
type lane struct {
	last []chan struct{} // for each master, closed when the last call's turn is over
	open int             // turns that are not over; at 0 the lane goes
}

// turn is one call's place in a lane at one master.
type turn struct {
	before <-chan struct{} // nil: nobody
	mine   chan struct{}
	end    func() // may be called again
}

// enter takes a place behind all calls so far at each of n masters. Each turn
// must be ended.
func (l *lanes) enter(name string, n int) []turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.name == nil {
		l.name = make(map[string]*lane)
	}
	in := l.name[name]
	if in == nil {
		in = &lane{last: make([]chan struct{}, n)}
		l.name[name] = in
	}
	in.open += n
	turns := make([]turn, n)
	for i := range turns {
		mine := make(chan struct{})
		turns[i] = turn{before: in.last[i], mine: mine, end: sync.OnceFunc(func() { l.leave(name, in, mine) })}
		in.last[i] = mine
	}
	return turns
}

func (l *lanes) leave(name string, in *lane, mine chan struct{}) {
	close(mine)
	l.mu.Lock()
	defer l.mu.Unlock()
	if in.open--; in.open == 0 {
		delete(l.name, name)
	}
}

// wait returns when the turn has come, or ctx's error.
func (t turn) wait(ctx context.Context) error {
	if t.before == nil {
		return nil
	}
	select {
	case <-t.before:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
