package schedtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Action is the kind of a fault.
type Action string

// Faults of one message. They need a Point before or after a request to Redis.
const (
	// DropRequest loses a request on its way: it is never carried out.
	DropRequest Action = "drop request"
	// DropReply loses the reply: the request was carried out, and the node does not learn it.
	DropReply Action = "drop reply"
	// Delay holds a message for For.
	Delay Action = "delay"
	// Refuse has Redis answer with an error (out of memory) and do nothing.
	Refuse Action = "refuse"
	// Reset breaks the connection instead of carrying the message on.
	Reset Action = "reset"
)

// Faults of one node.
const (
	// Crash ends the process at once: none of its messages reaches Redis or the sink any more, and
	// the contexts of its runs end, so that your functions end too. With For, another process takes
	// its place after that.
	Crash Action = "crash"
	// Pause stops a process for For, like SIGSTOP. No message leaves or reaches the process until
	// it goes on; then all messages do, old as they are. A function that is about to be called is
	// not called before. All clocks of a bubble are one, so the process's timers run on; their
	// effects reach neither Redis nor the sink before the process goes on. Effects of your function
	// inside this test, on a map say, are immediate.
	Pause Action = "pause"
	// Cut parts the node from Redis for For, in both directions, without an error on either side.
	Cut Action = "cut"
	// CutRequests loses the node's messages to Redis for For.
	CutRequests Action = "cut requests"
	// CutReplies loses Redis' messages to the node for For.
	CutReplies Action = "cut replies"
	// Drain stops the node as SIGTERM does; after For, another process takes its place.
	Drain Action = "drain"
	// Deploy is Drain, and the new process has version Version of the jobs.
	Deploy Action = "deploy"
	// StepNode moves the node's wall clock by By, for good.
	StepNode Action = "step node's clock"
)

// Faults of Redis.
const (
	// StepRedis moves Redis' clock by By, for good; with For, the step is taken back after that.
	StepRedis Action = "step Redis' clock"
	// StopRedis stops it for For; it comes back with its data.
	StopRedis Action = "stop Redis"
	// EmptyRedis stops it for For; it comes back without data.
	EmptyRedis Action = "empty Redis"
	// FlushRedis empties Redis while it runs, as FLUSHALL does: its id stays, no connection ends,
	// and no node is notified.
	FlushRedis Action = "flush Redis"
	// RollBackRedis stops Redis for For; it comes back without its last writes, like a replica that
	// a failover promoted. Writes is how many are lost, 1 to 8.
	RollBackRedis Action = "roll Redis back"
	// FlipRedis promotes a replica that lacks the last writes at once; after For, the former server
	// takes the place of the replica, without the replica's last writes. Writes is how many are
	// lost each time, 1 to 8.
	FlipRedis Action = "flip Redis"
	// FlushScripts makes Redis forget all scripts.
	FlushScripts Action = "flush scripts"
)

// Point is a moment in the life of a tick at which a fault can strike.
type Point string

// The named points. Before and after a request mean: when it reaches Redis, and when it was
// carried out but the reply has not left.
const (
	BeforeClaim   Point = "before claim"
	AfterClaim    Point = "after claim"
	AfterGrant    Point = "after grant"  // the node has received the grant, and waits for the tick of a grant ahead
	BeforeStart   Point = "before start" // granted; the function is about to be called
	AfterStart    Point = "after start"  // the function has been called
	BeforeRenew   Point = "before renew"
	AfterRenew    Point = "after renew"
	BeforeSettle  Point = "before settle"
	AfterSettle   Point = "after settle"
	BeforeReap    Point = "before reap"
	AfterReap     Point = "after reap"
	BeforeUnclaim Point = "before unclaim"
	AfterUnclaim  Point = "after unclaim"
	BeforeDefine  Point = "before define"
	AfterDefine   Point = "after define"
	BeforeRelay   Point = "before relay" // an event of a job's end is delivered to a follower
	AfterRelay    Point = "after relay"
)

var (
	actions = []Action{
		DropRequest, DropReply, Delay, Refuse, Reset, Crash, Pause, Cut, CutRequests, CutReplies, Drain, Deploy, StepNode,
		StepRedis, StopRedis, EmptyRedis, FlushRedis, RollBackRedis, FlipRedis, FlushScripts,
	}
	lasting = []Action{Delay, Pause, Cut, CutRequests, CutReplies, FlipRedis}
	points  = []Point{
		BeforeClaim, AfterClaim, AfterGrant, BeforeStart, AfterStart, BeforeRenew, AfterRenew, BeforeSettle, AfterSettle,
		BeforeReap, AfterReap, BeforeUnclaim, AfterUnclaim, BeforeDefine, AfterDefine, BeforeRelay, AfterRelay,
	}
)

// Fault is one thing that goes wrong, once.
type Fault struct {
	Do Action
	// At is the point at which the fault strikes: the Nth time that Node comes there (0 counts as
	// 1; an empty Node is any), not before When. Without At it strikes at When. When counts from
	// the start.
	At   Point
	Nth  int
	When time.Duration
	// Node is the node that is hit. It is not needed for a fault of Redis, nor with a Point: there
	// the node that reaches the point is hit.
	Node    string
	For     time.Duration
	By      time.Duration
	Version int // of Deploy: index into Plan.Versions
	Writes  int // of RollBackRedis and FlipRedis
}

// String returns the fault's action, target and time.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Do))
	if f.Node != "" {
		b.WriteString(" " + f.Node)
	}
	if f.At != "" {
		fmt.Fprintf(&b, ", %s (%d), from %s on", f.At, max(1, f.Nth), f.When)
	} else {
		fmt.Fprintf(&b, ", at %s", f.When)
	}
	if f.For != 0 {
		fmt.Fprintf(&b, ", for %s", f.For)
	}
	if f.By != 0 {
		fmt.Fprintf(&b, ", by %s", f.By)
	}
	if f.Do == Deploy {
		fmt.Fprintf(&b, ", version %d", f.Version)
	}
	if f.Writes != 0 {
		fmt.Fprintf(&b, ", %d writes", f.Writes)
	}
	return b.String()
}

// ofMessage reports whether the fault hits one message.
func (f Fault) ofMessage() bool {
	switch f.Do {
	case DropRequest, DropReply, Delay, Refuse, Reset:
		return true
	default:
		return false
	}
}

// ofRedis reports whether the fault hits Redis.
func (f Fault) ofRedis() bool {
	switch f.Do {
	case StepRedis, StopRedis, EmptyRedis, FlushRedis, RollBackRedis, FlipRedis, FlushScripts:
		return true
	default:
		return false
	}
}

// loses reports whether the fault may lose writes that Redis has acknowledged.
func (f Fault) loses() bool { return f.empties() || f.rollsBack() }

// empties reports whether all data are lost.
func (f Fault) empties() bool { return f.Do == EmptyRedis || f.Do == FlushRedis }

// rollsBack reports whether the last writes are lost.
func (f Fault) rollsBack() bool { return f.Do == RollBackRedis || f.Do == FlipRedis }

func (f Fault) validate(nodes []string, versions int) error {
	known := f.Node == ""
	for _, n := range nodes {
		known = known || n == f.Node
	}
	switch {
	case !slices.Contains(actions, f.Do):
		return fmt.Errorf("fault %q: there is no such action; see the constants of type Action", f)
	case f.At != "" && !slices.Contains(points, f.At):
		return fmt.Errorf("fault %q: there is no point %q; see the constants of type Point", f, f.At)
	case !known:
		return fmt.Errorf("fault %q: there is no node %q; the nodes are %s", f, f.Node, strings.Join(nodes, ", "))
	case f.ofMessage() && (f.At == "" || slices.Contains([]Point{AfterGrant, BeforeStart, AfterStart}, f.At)):
		return fmt.Errorf("fault %q: it hits a message, so it needs a point before or after a request, such as BeforeClaim", f)
	case (f.Do == DropRequest || f.Do == Refuse) && !strings.HasPrefix(string(f.At), "before"), f.Do == DropReply && !strings.HasPrefix(string(f.At), "after"):
		return fmt.Errorf("fault %q: a request is dropped or refused before it is carried out, a reply dropped after; choose the point so", f)
	case f.For < 0, f.For == 0 && slices.Contains(lasting, f.Do):
		return fmt.Errorf("fault %q: For is %s: it must last some time", f, f.For)
	case f.At == "" && f.Node == "" && !f.ofRedis():
		return fmt.Errorf("fault %q: it needs a node or a point", f)
	case f.Do == Deploy && (f.Version < 0 || f.Version >= versions):
		return fmt.Errorf("fault %q: there are %d versions, counted from 0", f, versions)
	case f.rollsBack() && (f.Writes < 1 || f.Writes > pastKept):
		return fmt.Errorf("fault %q: Writes is %d and must lie between 1 and %d", f, f.Writes, pastKept)
	}
	return nil
}
