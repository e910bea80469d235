package explore

import "fmt"

// Happening is what kind of step was taken, in words: of a node where it is no sentence.
type Happening string

// The happenings.
const (
	TimePassed         Happening = "time passes"
	ClockStepped       Happening = "Redis' clock steps"
	FailedOver         Happening = "Redis falls back to a copy that lacks the last write"
	Crashed            Happening = "crashes"
	Restarted          Happening = "starts again"
	WasPaused          Happening = "stands still"
	Resumed            Happening = "goes on"
	Sampled            Happening = "looks at Redis' clock"
	Looked             Happening = "reads the cursor"
	Started            Happening = "calls the function, for its tick is due"
	Returned           Happening = "returns from the function"
	GaveUp             Happening = "gives up: no copy of its claim can be granted any more"
	Deployed           Happening = "is restarted with definition"
	Sent               Happening = "sent"
	ReplyLost          Happening = "the reply is lost"
	Delayed            Happening = "the request is under way for long"
	Dropped            Happening = "the network drops the delayed request"
	Delivered          Happening = "the delayed request arrives"
	DeliveredReplyLost Happening = "the delayed request arrives, and its reply is lost"
)

// Event is one step, as much of it as a person wants to read.
type Event struct {
	What      Happening
	Node      int8
	By        int8 // by how much the clock stepped; the definition deployed
	Command   Command
	Answer    Answer
	HandsBack bool
}

// String is the step in plain words.
func (e Event) String() string {
	switch e.What {
	case TimePassed, FailedOver:
		return string(e.What)
	case ClockStepped:
		return fmt.Sprintf("%s by %+d", e.What, e.By)
	case Deployed:
		return fmt.Sprintf("node %d %s %d", e.Node, e.What, e.By)
	case Sent:
		return e.Command.String() + ": " + string(e.Answer) + e.after()
	case ReplyLost, Delayed, Dropped, Delivered, DeliveredReplyLost:
		return fmt.Sprintf("%s: %s %s%s", e.Command, e.What, e.Answer, e.after())
	default:
		return fmt.Sprintf("node %d %s", e.Node, e.What)
	}
}

func (e Event) after() string {
	if e.HandsBack {
		return "; it will hand the run back"
	}
	return ""
}

// String says who asks for what.
func (c Command) String() string {
	if c.Node == nobody {
		return "a process that is gone " + c.wish()
	}
	return fmt.Sprintf("node %d %s", c.Node, c.wish())
}

func (c Command) wish() string {
	run := fmt.Sprintf("run %d (tick %d, shard %d)", c.Run, c.Tick, c.Shard)
	if c.Asking {
		return "asks whether it was granted " + run
	}
	switch c.Kind {
	case ClaimTick:
		return fmt.Sprintf("claims %s, from cursor %d to %d", run, c.Cursor, c.Next)
	case ClaimShard:
		return "claims the free shard as " + run
	case ClaimPending:
		return fmt.Sprintf("claims the pending %s, attempt %d", run, c.Attempt)
	case Renew:
		return "renews " + run
	case Settle:
		return "settles " + run
	case Reap:
		return "asks to reap " + run
	case Unclaim:
		return "hands back " + run
	case Define:
		if c.Same {
			return fmt.Sprintf("replaces definition %d by %d, whose schedule is the same", c.Was, c.Digest)
		}
		return fmt.Sprintf("replaces definition %d by %d at its %d, from cursor %d to %d", c.Was, c.Digest, c.Tick, c.Cursor, c.Next)
	default:
		return "asks nothing"
	}
}

// numbered puts a number before each line.
func numbered(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = fmt.Sprintf("%2d. %s", i+1, line)
	}
	return out
}
