package redlock

import (
	"context"
	"sync"
)

// lanes keep the order of this driver's acquisitions and releases at each master.
// Callers go on when a majority has answered, and what they left under way to the
// others travels over several connections: a release could arrive before what it
// takes back, or an acquisition after the next holder has come and gone. So each
// call goes behind its owner's last one, and an acquisition behind the last release
// of its lock. Acquisitions do not wait for each other: of many who want one lock,
// most would spend their MasterTimeout in the row, and call masters that answer
// silent.
type lanes struct {
	mu    sync.Mutex
	lanes map[lane]*row
}

// lane is whose order is kept: an owner's, or that of a lock's releases.
type lane struct{ owner, released string }

// row is where the calls of one lane stand.
type row struct {
	last []chan struct{} // for each master, closed when the last call's turn is over
	open int             // turns that are not over; at 0 the row goes
}

// turn is one call's place at one master.
type turn struct {
	before [2]<-chan struct{} // nil: nobody
	end    func()             // may be called again
}

// enter takes a place at each of n masters. Each turn must be ended.
func (l *lanes) enter(name, owner string, n int, release bool) []turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns, own, others := make([]turn, n), l.row(lane{owner: owner}, n), l.lanes[lane{released: name}]
	if release {
		others = l.row(lane{released: name}, n)
	}
	for i := range turns {
		mine := make(chan struct{})
		turns[i].before[0], own.last[i] = own.last[i], mine
		own.open++
		if others != nil {
			turns[i].before[1] = others.last[i]
		}
		if release {
			others.last[i] = mine
			others.open++
		}
		turns[i].end = sync.OnceFunc(func() { l.leave(name, owner, release, mine) })
	}
	return turns
}

// row returns that of a lane, made if need be; l.mu is held.
func (l *lanes) row(of lane, n int) *row {
	if l.lanes == nil {
		l.lanes = make(map[lane]*row)
	}
	if l.lanes[of] == nil {
		l.lanes[of] = &row{last: make([]chan struct{}, n)}
	}
	return l.lanes[of]
}

func (l *lanes) leave(name, owner string, release bool, mine chan struct{}) {
	close(mine)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveRow(lane{owner: owner})
	if release {
		l.leaveRow(lane{released: name})
	}
}

// leaveRow ends one turn of a lane; l.mu is held.
func (l *lanes) leaveRow(of lane) {
	in := l.lanes[of]
	if in.open--; in.open == 0 {
		delete(l.lanes, of)
	}
}

// wait returns when the turn has come, or ctx's error.
func (t turn) wait(ctx context.Context) error {
	for _, before := range t.before {
		if before == nil {
			continue
		}
		select {
		case <-before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
