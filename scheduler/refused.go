package scheduler

import (
	"strings"

	"github.com/escapement/escapement/scheduler/internal/roster"
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
