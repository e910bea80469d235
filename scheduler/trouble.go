package scheduler

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

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

// evictionWithin bounds the question whether Redis evicts, and the one who it is: of a Cluster a master may be silent.
const evictionWithin = 500 * time.Millisecond

// warnEviction tells of a Redis that drops keys when its memory is full. One that does not say is not asked again.
func (n *Node) warnEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	if policy, _ := redisconn.Evicts(ctx, n.client); policy != "" { // what else is wrong is found by the calls that matter
		n.log.Warn("Redis drops keys when its memory is full: a tick may run twice, and history vanish; set maxmemory-policy noeviction", "policy", policy)
	}
}

// findMasters has a Cluster's client look who is master of what now: for the partitions of a master that died, none but their own
// calls fail.
func (n *Node) findMasters(err error) { redisconn.LookAgain(context.Background(), n.client, err) }

// warnUnnamed tells of a Redis that does not tell this node its run_id, by which a restart is noticed. It asks once more, for the
// reason: the embedded one has none to tell, and does not outlive a restart.
func (n *Node) warnUnnamed(ctx context.Context) {
	if n.clock.server() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	err := n.client.Info(ctx, "server").Err()
	if err == nil || redis.IsPermissionError(err) || strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		n.log.Warn("Redis does not say which server it is, for this node's user may not ask for INFO, or the service hides run_id: restarts and failovers go unnoticed, and after one that lost writes a tick may run twice; give the user the right to INFO (ACL SETUSER NAME +info)", "error", err)
	}
}
