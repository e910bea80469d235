package scheduler

import (
	"strings"

	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/runner"
)

// maxRefused bounds the text of SetRefused, in bytes.
const maxRefused = 300

// RefusedView says since when a node refuses a changed configuration, and why, or where it is wrong.
type RefusedView struct {
	At   *Stamp `json:"at"` // of the first refusal since the node had its configuration
	Text string `json:"text"`
}

// SetRefused says that a change of the node's configuration was refused, and why: `nodes list` and `doctor` show it, from the node's next
// heartbeat on, to all who may read the namespace. 300 bytes in one line are kept. "" says that the node has its configuration again;
// until then later calls keep the time of the first. The node goes on with the jobs that it has. Do not pass what is secret.
func (n *Node) SetRefused(why string) {
	if why = oneLine(why); why == "" {
		n.state.Refused.Store(nil)
		return
	}
	const cut = "..."
	if len(why) > maxRefused {
		why = strings.ToValidUTF8(why[:maxRefused-len(cut)], "") + cut
	}
	at := n.cfg.seam.Wall().UnixMilli()
	if was := n.state.Refused.Load(); was != nil {
		at = was.At
	}
	n.state.Refused.Store(&roster.Refusal{At: at, Text: why})
}

func refusedView(r *roster.Refusal) *RefusedView {
	if r == nil {
		return nil
	}
	return &RefusedView{At: stampOf(r.At), Text: oneLine(r.Text)}
}

// stalled are the runs of a node that have stalled, for the roster.
func stalled(r *runner.Runner) (list []roster.Stall) {
	for _, s := range r.StalledRuns(roster.MaxStalled) {
		list = append(list, roster.Stall{Job: s.Lease.Job, Run: s.Lease.Run, Tick: s.Lease.Tick, After: s.After.Milliseconds()})
	}
	return list
}
