package ledger

import (
	"fmt"
	"regexp"
	"testing"
)

// onePath takes the fast paths out of the scripts.
var onePath = []edit{
	{"claim/plain", "elseif s and not shut and #ARGV[a] > 1 then", "elseif false then"},
	{"settle/plain", "elseif s and r and ARGV[a] == '' then", "elseif false then"},
}

// paths gives the first server of a trace the scripts as they ship, and the second server scripts
// without a fast path.
type paths struct {
	claim, settle [2]*script
	fast          int // replies to claims in which the fast path had a part
}

func newPaths(t *testing.T) *paths {
	t.Helper()
	var l paths
	useScripts(t, steered...)
	l.claim[0], l.settle[0] = claimScript, settleScript
	useScripts(t, append(onePath, steered...)...)
	l.claim[1], l.settle[1] = claimScript, settleScript
	return &l
}

func (l *paths) use(server int) {
	if l != nil {
		claimScript, settleScript = l.claim[min(server, 1)], l.settle[min(server, 1)]
	}
}

var fastReply = regexp.MustCompile(`^\["[0-9,]*[0-9]`)

func (l *paths) count(call string, replies []string) {
	if l != nil && len(replies) > 0 && fastReply.MatchString(replies[0]) {
		l.fast++
	}
}

// TestPathsAgree: the fast paths of claims and ends do the same as the slow paths, to the letter.
func TestPathsAgree(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		all := seed%2 == 0 // then nearly every call is another one
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			both := newPaths(t)
			tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, all), counts: map[string]int{}, paths: both}
			tr.run(t, *traceOps)
			t.Logf("the fast path had a part in %d claims", both.fast)
			if !all && both.fast < *traceOps/100 {
				t.Errorf("the fast path had a part in %d of %d calls only", both.fast, *traceOps)
			}
		})
	}
}
