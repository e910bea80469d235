package model

import "fmt"

// Step is the kind of a step in words: of a node where the words are no sentence.
type Step string

// The steps.
const (
	TimePassed         Step = "time passes"
	ClockStepped       Step = "Redis' clock steps"
	FailedOver         Step = "Redis falls back to a copy that lacks the last write"
	Crashed            Step = "crashes"
	Restarted          Step = "starts again"
	WasPaused          Step = "stands still"
	Resumed            Step = "goes on"
	Sampled            Step = "looks at Redis' clock"
	Looked             Step = "reads the cursor"
	Started            Step = "calls the function, for its tick is due"
	Returned           Step = "returns from the function"
	GaveUp             Step = "gives up: no copy of its claim can be granted any more"
	Deployed           Step = "is restarted with definition"
	Sent               Step = "sent"
	ReplyLost          Step = "the reply is lost"
	Delayed            Step = "the request is under way for long"
	Dropped            Step = "the network drops the delayed request"
	Delivered          Step = "the delayed request arrives"
	DeliveredReplyLost Step = "the delayed request arrives, and its reply is lost"
)

// Event is one step, as much of it as a person wants to read.
type Event struct {
	What      Step
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

// String is the command in words.
func (c Command) String() string {
	if c.Node == nobody {
		return "a process that is gone " + c.words()
	}
	return fmt.Sprintf("node %d %s", c.Node, c.words())
}

func (c Command) words() string {
	run := fmt.Sprintf("run %d (tick %d, shard %d)", c.Run, c.Tick, c.Shard)
	if c.Asking {
		return "asks whether it was granted " + run
	}
	switch c.Kind {
	case ClaimTick:
		return fmt.Sprintf("claims %s, from cursor %d to %d", run, c.Cursor, c.Next)
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
