package schedtest

import (
	"math/rand/v2"
	"time"
)

// The points where a message can be hit, and the other points in the life of a tick.
var (
	requestsAt = []Point{BeforeClaim, BeforeClaim, BeforeClaim, BeforeRenew, BeforeSettle, BeforeSettle, BeforeReap, BeforeUnclaim, BeforeDefine}
	repliesAt  = []Point{AfterClaim, AfterClaim, AfterClaim, AfterRenew, AfterSettle, AfterSettle, AfterReap, AfterUnclaim, AfterDefine}
	startsAt   = []Point{AfterGrant, AfterGrant, BeforeStart, BeforeStart, AfterStart, AfterStart}

	messageFaults = []Action{DropRequest, DropReply, Delay, Reset}
	nodeFaults    = []Action{Crash, Crash, Pause, Pause, Cut, CutRequests, CutReplies, Drain, StepNode}
	redisFaults   = []Action{StepRedis, StopRedis, StopRedis, EmptyRedis, FlushRedis, RollBackRedis, RollBackRedis, FlushScripts}
)

// RandomFaults returns n faults that a seed chooses. All begin between from and until and most end
// before until; about four in five are aimed at a point. Deploys and refusals are not among them.
func RandomFaults(seed uint64, n, nodes int, from, until time.Duration) []Fault {
	d := &dice{rand.New(rand.NewPCG(seed, 0xfa17))}
	faults := make([]Fault, n)
	for i := range faults {
		faults[i] = d.fault(nodes, from, until)
	}
	return faults
}

type dice struct{ *rand.Rand }

func pick[T any](d *dice, from []T) T { return from[d.IntN(len(from))] }

// between is a whole number of milliseconds in [a, b).
func (d *dice) between(a, b time.Duration) time.Duration {
	return (a + time.Duration(d.Int64N(int64(b-a)))).Truncate(time.Millisecond)
}

func (d *dice) fault(nodes int, from, until time.Duration) Fault {
	f := Fault{When: d.between(from, until)}
	switch kind := d.IntN(8); {
	case kind < 3:
		f.Do = pick(d, messageFaults)
	case kind < 6:
		f.Do = pick(d, nodeFaults)
	default:
		f.Do = pick(d, redisFaults)
	}
	if f.ofMessage() || d.IntN(3) > 0 {
		f.At, f.Nth = d.point(f), 1+d.IntN(3)
	}
	if !f.ofRedis() && (f.At == "" || d.IntN(2) == 0) {
		f.Node = string(rune('a' + d.IntN(nodes)))
	}
	d.extent(&f, until)
	return f
}

func (d *dice) point(f Fault) Point {
	switch {
	case f.Do == DropRequest:
		return pick(d, requestsAt)
	case f.Do == DropReply:
		return pick(d, repliesAt)
	case !f.ofMessage() && d.IntN(3) == 0:
		return pick(d, startsAt)
	case d.IntN(2) == 0:
		return pick(d, requestsAt)
	default:
		return pick(d, repliesAt)
	}
}

// extent sets for how long, or by how much.
func (d *dice) extent(f *Fault, until time.Duration) {
	left := until - f.When
	switch f.Do {
	case Delay:
		f.For = d.between(50*time.Millisecond, 3*time.Second)
	case Crash, Drain:
		f.For = d.between(time.Second, 6*time.Second)
	case Pause:
		f.For = d.between(500*time.Millisecond, 8*time.Second)
	case Cut, CutRequests, CutReplies:
		f.For = d.between(200*time.Millisecond, 6*time.Second)
	case StopRedis:
		f.For = d.between(100*time.Millisecond, 4*time.Second)
		if d.IntN(4) == 0 && left > 11*time.Second {
			f.For = d.between(10*time.Second, left) // longer than late ticks are run in order
		}
	case EmptyRedis:
		f.For = d.between(100*time.Millisecond, 2*time.Second)
	case RollBackRedis:
		f.For, f.Writes = d.between(20*time.Millisecond, 2*time.Second), 1+d.IntN(4)
	case StepRedis:
		f.By = pick(d, []time.Duration{200 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second, 13 * time.Second, 90 * time.Second})
		if f.By > time.Minute && d.IntN(2) == 0 { // it is not believed
			f.By, f.For = pick(d, []time.Duration{f.By, 10 * time.Minute}), d.between(500*time.Millisecond, 9*time.Second)
		}
		if d.IntN(2) == 0 {
			f.By = -f.By
		}
	case StepNode:
		f.By = d.between(-5*time.Minute, 5*time.Minute)
	default:
	}
}
