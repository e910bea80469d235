package explore

import "fmt"

// Happening is what kind of step was taken.
type Happening int8

// The happenings, in the order of the words below.
const (
	TimePassed Happening = iota
	ClockStepped
	FailedOver
	Crashed
	Restarted
	WasPaused
	Resumed
	Sampled
	Looked
	Started
	Returned
	GaveUp
	Deployed
	Sent
	ReplyLost
	Delayed
	Dropped
	Delivered
	DeliveredReplyLost
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
	case TimePassed:
		return "time passes"
	case ClockStepped:
		return fmt.Sprintf("Redis' clock steps by %+d", e.By)
	case FailedOver:
		return "Redis falls back to a copy that lacks the last write"
	case Deployed:
		return fmt.Sprintf("node %d is restarted with definition %d", e.Node, e.By)
	case GaveUp:
		return fmt.Sprintf("node %d gives up on run %d (tick %d, shard %d): no copy of its claim can be granted any more", e.Node, e.Command.Run, e.Command.Tick, e.Command.Shard)
	case Sent:
		return e.Command.String() + ": " + e.Answer.String() + e.after()
	case ReplyLost:
		return e.Command.String() + ": " + e.Answer.String() + ", but the reply is lost"
	case Delayed:
		return e.Command.String() + ": the request is under way for long"
	case Dropped:
		return "the network drops the delayed request: " + e.Command.String()
	case Delivered:
		return "the delayed request arrives: " + e.Command.String() + ": " + e.Answer.String() + e.after()
	case DeliveredReplyLost:
		return "the delayed request arrives: " + e.Command.String() + ": " + e.Answer.String() + ", and its reply is lost"
	default:
		return fmt.Sprintf("node %d %s", e.Node, deeds[e.What])
	}
}

func (e Event) after() string {
	if e.HandsBack {
		return "; it will hand the run back"
	}
	return ""
}

var deeds = map[Happening]string{
	Crashed: "crashes", Restarted: "starts again", WasPaused: "stands still", Resumed: "goes on",
	Sampled: "looks at Redis' clock", Looked: "reads the cursor", Started: "calls the function, for its tick is due", Returned: "returns from the function",
}

var answers = [...]string{
	"", "granted", "done", "your clock is wrong", "moved", "early", "held", "skipped", "superseded", "lost", "alive",
}

// String is the answer as a person would give it.
func (a Answer) String() string { return answers[a] }

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
