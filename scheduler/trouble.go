package scheduler

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

// mostTrouble bounds what a node's record says of its trouble, in bytes.
const mostTrouble = 200

// claimTrouble is why the node claims nothing, or not everything, when it has registered and nobody has told it to stop, but for the
// seconds after a failover.
func (n *Node) claimTrouble() error {
	return errors.Join(n.health.trouble(), n.quiet.trouble(), n.clock.usable())
}

// trouble is claimTrouble for the node's record in the roster, "" for none.
func (n *Node) trouble() string {
	err := n.claimTrouble()
	if err == nil {
		return ""
	}
	words := oneLine(err.Error())
	if len(words) > mostTrouble {
		words = strings.ToValidUTF8(words[:mostTrouble], "")
	}
	return words
}

// evictionWithin bounds the question whether Redis evicts: of a Cluster a master may be silent.
const evictionWithin = 500 * time.Millisecond

// warnEviction tells of a Redis that drops keys when its memory is full. One that does not say is not asked again.
func (n *Node) warnEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	if policy, _ := redisconn.Evicts(ctx, n.client); policy != "" { // what else is wrong is found by the calls that matter
		n.log.Warn("Redis drops keys when its memory is full: a tick may run twice, and history vanish; set maxmemory-policy noeviction", "policy", policy)
	}
}
