package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

// Kind is a kind of problem of a job.
type Kind string

// The kinds of events.
const (
	// Failed: a run has failed, has timed out or has lost its lease. Over when a run succeeds.
	Failed Kind = "failed"
	// Abandoned: the node of a run has died, or was cut off. Over when a run succeeds.
	Abandoned Kind = "abandoned"
	// Missed: ticks were not run, because no node claimed them in time. Over when a run succeeds.
	Missed Kind = "missed"
	// Stalled: a run made no progress for its job's StallAfter. Notified once for each attempt.
	// Over when a run succeeds after that.
	Stalled Kind = "stalled"
	// Late: a tick has been due for Config.LateAfter, and no node has answered it. Over when it is
	// answered.
	Late Kind = "late"
	// Overdue: the same, and no living node can run the job.
	Overdue Kind = "overdue"
	// NoSuccess: no run has succeeded within Expect.SuccessWithin. Over when a run succeeds.
	NoSuccess Kind = "no_success"
)

// Kinds are all kinds.
var Kinds = []Kind{Failed, Abandoned, Missed, Stalled, Late, Overdue, NoSuccess}

// Event is a problem of a job, or its end.
type Event struct {
	Job       string    `json:"job"`
	Kind      Kind      `json:"event"`
	Recovered bool      `json:"recovered"` // it is over
	Key       string    `json:"key"`       // names the namespace, the job and the kind: the same when it is over
	At        time.Time `json:"at"`        // when it was noticed, by Redis' clock
	Since     time.Time `json:"since"`     // of a recovery: when the problem was noticed; else null
	Tick      time.Time `json:"tick"`      // of missed ticks: the first one; null where no tick is meant
	Run       string    `json:"run"`       // "" where no run is meant
	Node      string    `json:"node"`      // where it ran
	Outcome   string    `json:"outcome"`   // of a run: failed, timed_out, lost, abandoned
	Count     int64     `json:"count"`     // how many runs ended so, or ticks were missed, since the last look
	Error     string    `json:"error"`     // of a run: its error; else the reason
	Text      string    `json:"text"`      // all fields in one line
}

// Message is one delivery to a target.
type Message struct {
	ID        string  `json:"id"` // stays the same when the message is sent again
	Namespace string  `json:"namespace"`
	Events    []Event `json:"events"` // in the order in which they were noticed
	// More is how many further events there were that are not listed.
	More int `json:"more"`
	// HeldBack: the message waited for the limit of messages an hour.
	HeldBack bool   `json:"held_back"`
	Text     string `json:"text"` // all fields in some lines
}

// errorMost bounds the error of an event, in bytes.
const errorMost = 500

// sentence is the event in one line.
func (e Event) sentence() string {
	if e.Recovered {
		return fmt.Sprintf("%s has recovered (%s since %s)%s", e.Job, e.Kind, ops.FormatTime(e.Since), colon(e.Error))
	}
	tick := ""
	if !e.Tick.IsZero() {
		tick = ops.FormatTime(e.Tick)
	}
	switch e.Kind {
	case Failed:
		return fmt.Sprintf("%s %s: tick %s on %s%s%s", e.Job, strings.ReplaceAll(e.Outcome, "_", " "), tick, e.Node, times(e.Count, "runs"), colon(e.Error))
	case Abandoned:
		return fmt.Sprintf("%s abandoned: node %s died or was cut off while it ran tick %s%s%s", e.Job, e.Node, tick, times(e.Count, "runs"), colon(e.Error))
	case Missed:
		return fmt.Sprintf("%s missed a tick: %s%s%s", e.Job, tick, times(e.Count, "ticks"), colon(e.Error))
	case Stalled:
		return fmt.Sprintf("%s stalled: tick %s on %s%s", e.Job, tick, e.Node, colon(e.Error))
	case Late:
		return fmt.Sprintf("%s is late: tick %s has not begun%s", e.Job, tick, colon(e.Error))
	case Overdue:
		return fmt.Sprintf("%s is overdue: nobody can run tick %s%s", e.Job, tick, colon(e.Error))
	default:
		return fmt.Sprintf("%s has not succeeded in time%s", e.Job, colon(e.Error))
	}
}

func times(n int64, what string) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d %s)", n, what)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// text is a message in some lines; the first has the number of events.
func (m Message) text() string {
	if len(m.Events) == 1 && m.More == 0 && !m.HeldBack {
		return "[" + m.Namespace + "] " + m.Events[0].Text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %d events", m.Namespace, len(m.Events)+m.More)
	if m.HeldBack {
		b.WriteString(", held back by the limit of messages an hour")
	}
	for _, e := range m.Events {
		b.WriteString("\n- " + e.Text)
	}
	if m.More > 0 {
		fmt.Fprintf(&b, "\nand %d more, not listed", m.More)
	}
	return b.String()
}

// Sample is a message to try a target with.
func Sample(namespace, id string, now time.Time) Message {
	tick := now.Truncate(time.Minute)
	e := Event{
		Job: "sample", Kind: Failed, Key: namespace + "/sample/failed", At: now, Tick: tick, Node: "nowhere", Outcome: "failed", Count: 1,
		Error: "this is only a test of notifications; nothing has failed",
	}
	e.Text = e.sentence()
	m := Message{ID: id, Namespace: namespace, Events: []Event{e}}
	m.Text = m.text()
	return m
}

// line is a text without line ends and other control characters, cut to a length.
func line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
