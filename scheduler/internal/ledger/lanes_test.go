package ledger

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/escapement/escapement/locking/redisconn"
)

// oneLane takes the fast lanes out of the scripts.
var oneLane = []edit{
	{"claim", "elseif s and not shut and #ARGV[a] > 1 then", "elseif false then"},
	{"settle", "elseif s and r and ARGV[a] == '' then", "elseif false then"},
}

// lanes gives the first server of a trace the scripts as they ship, and the others those without a fast lane.
type lanes struct {
	claim, settle [2]*redisconn.Script
	fast          int // replies to claims in which the fast lane had a part
}

func newLanes(t *testing.T) *lanes {
	t.Helper()
	var l lanes
	useScripts(t, steered...)
	l.claim[0], l.settle[0] = claimScript, settleScript
	useScripts(t, append(oneLane, steered...)...)
	l.claim[1], l.settle[1] = claimScript, settleScript
	return &l
}

func (l *lanes) use(server int) {
	if l != nil {
		claimScript, settleScript = l.claim[min(server, 1)], l.settle[min(server, 1)]
	}
}

var fastReply = regexp.MustCompile(`^\["[0-9,]*[0-9]`)

func (l *lanes) count(call string, replies []string) {
	if l != nil && len(replies) > 0 && fastReply.MatchString(replies[0]) {
		l.fast++
	}
}

// TestLanesAgree: what the fast lanes of claims and ends do is what the others would have done, to the letter.
func TestLanesAgree(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		all := seed%2 == 0 // then nearly everything that is asked is something else
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			both := newLanes(t)
			tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, all), counts: map[string]int{}, lanes: both}
			tr.run(t, *traceOps)
			t.Logf("the fast lane had a part in %d claims", both.fast)
			if !all && both.fast < *traceOps/100 {
				t.Errorf("the fast lane had a part in %d of %d calls only", both.fast, *traceOps)
			}
		})
	}
}
