package scheduler

import (
	"strings"

	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/runner"
)

// maxRefused bounds the text of SetRefused, in bytes.
const maxRefused = 300

// SetRefused records that a change of the node's configuration was refused, and why: `nodes list`
// and `doctor` show the reason, from the node's next heartbeat on, to every reader of the
// namespace. 300 bytes in one line are kept. "" withdraws the reason; until then later calls keep
// the time of the first. The node goes on with the jobs that it has. Do not pass secrets.
func (n *Node) SetRefused(why string) {
	if why = strings.ToValidUTF8(strings.Join(strings.Fields(why), " "), "\uFFFD"); why == "" {
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

// stalled are the runs of a node that have stalled, for the roster.
func stalled(r *runner.Runner) (list []roster.Stall) {
	for _, s := range r.StalledRuns(roster.MaxStalled) {
		list = append(list, roster.Stall{Job: s.Lease.Job, Run: s.Lease.ID, Tick: s.Lease.Tick, After: s.After.Milliseconds()})
	}
	return list
}
