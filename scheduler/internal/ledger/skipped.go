package ledger

import (
	"net/url"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
)

// SkippedRange is ticks in a row that will not be run, recorded as one row.
type SkippedRange struct {
	Outcome     jobs.Outcome // missed, skipped or paused
	Reason      string       // one of the Reason constants
	First, Last int64        // ms
	Count       int64
	Next        int64 // the tick after Last, ms; 0 when the schedule has no more
}

// Text spells a gap; "" for none.
func (p *SkippedRange) Text() string {
	if p == nil {
		return ""
	}
	return Spell(p.First) + "," + Spell(p.Last) + "," + Spell(p.Count)
}

// Why ticks were not run, or runs ended.
const (
	ReasonLate        = "late"         // missed: catch_up did not choose the tick, or no node could take it for a follower
	ReasonCatchUpMax  = "catch_up_max" // missed, and catch_up: all keeps only so many
	ReasonStartWithin = "start_within" // it could have started only later than that
	ReasonNoNode      = "no node"      // missed: no living node could run it for longer than start_within, or a day
	ReasonFailover    = "failover"     // Redis lost the tick's result, and no living node can report it
	ReasonOverlap     = "overlap"      // another run of the job was in flight
	ReasonUpstream    = "upstream"     // skipped: an upstream ended the tick otherwise than when asks for; missed: the join was given up
	ReasonPaused      = "paused"       // the job was paused
	ReasonReplacedDef = "definition replaced"
	ReasonMaxRuns     = "max_runs"     // not a tick: the job has had so many
	ReasonRewound     = "rewound"      // not a tick: an operator set the cursor back
	ReasonLapsed      = "lease lapsed" // the node gave no sign for the lease's time
	ReasonReplaced    = "replaced"     // a newer tick took its place
	ReasonStalled     = "stalled"      // it made no progress for the job's stall_after
	ReasonDraining    = "draining"     // its node was stopped, and the time to end was over
)

// NoNodeGiveUp is how late a tick of a job without start_within must be before the tick is recorded
// as missed for ReasonNoNode.
const NoNodeGiveUp = 24 * time.Hour

// ShardsText is the shards of a tick to be opened, as scripts read them; "" for fewer than two.
func ShardsText(shards int, params []string) string {
	if shards < 2 {
		return ""
	}
	text := strconv.Itoa(shards)
	for _, p := range params {
		text += "," + url.QueryEscape(p)
	}
	return text
}
