package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// whoTimeout bounds each question to a master of a Cluster about itself.
const whoTimeout = 400 * time.Millisecond

func (l *Ledger) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if !l.Clustered() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, whoTimeout)
}

// Nobody is the id of a master that has not answered yet: scripts refuse a caller with this id.
const Nobody = "?"

// replica is the id of a server that is no master.
const replica = "replica"

// Clustered reports whether partitions live on different masters, of which one may be unreachable
// alone.
func (l *Ledger) Clustered() bool {
	_, yes := l.client.(*redis.ClusterClient)
	return yes
}

// Master is a server that has partitions, according to the client.
type Master struct {
	client redis.UniversalClient // of this server alone
	Addr   string                // "" for the only one
}

// Known reports whether there is such a server.
func (m Master) Known() bool { return m.client != nil }

// Master returns the server of a partition, according to the client: on a Cluster another server
// may be the master already.
func (l *Ledger) Master(ctx context.Context, part int) (Master, error) {
	cluster, yes := l.client.(*redis.ClusterClient)
	if !yes {
		return Master{client: l.client}, nil
	}
	client, err := cluster.MasterForKey(ctx, l.keys[part].jobs)
	if err != nil {
		return Master{}, l.explain(ctx, "look for a partition's master", err)
	}
	return Master{client, redisconn.Addr(client)}, nil
}

// Identity reads a master's id and the incarnations of some of its partitions, see Recognize. known
// is the id that the caller has, which it returns with an error. After an error a Cluster client
// reads the topology again.
func (l *Ledger) Identity(ctx context.Context, m Master, parts []int, known string) (s Sample, err error) {
	defer func() { redisconn.Refresh(ctx, l.client, err) }()
	call, cancel := l.bounded(ctx)
	defer cancel()
	s, err = l.sample(call, m.client, "", parts)
	switch {
	case err != nil:
		return Sample{Server: known}, redisconn.Classify("ask who it is", err)
	case s.Server == replica && l.Clustered():
		return Sample{Server: known}, fmt.Errorf("%w: the server is a replica now", locking.ErrUnreachable)
	}
	s.Server, err = l.Recognize(ctx, m, parts[0], s.Server, known)
	return s, err
}

// Recognize returns the id of a master from now on: the given one, or known with an error while the
// master takes no writes, because it loads its data or lacks replicas. Without a known id, "", any
// id will do.
func (l *Ledger) Recognize(ctx context.Context, m Master, part int, id, known string) (string, error) {
	if known == "" || id == "" || id == known {
		return id, nil
	}
	if err := l.Writable(ctx, m, part); err != nil {
		return known, err
	}
	return id, nil
}

// Writable returns nil when a master takes writes for a partition. A master of a Cluster has
// whoTimeout, 400 ms, to answer.
func (l *Ledger) Writable(ctx context.Context, m Master, part int) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return redisconn.Classify("ask whether writes are taken", m.client.Set(ctx, l.keys[part].confirm, "", time.Second).Err())
}

// Answers returns nil when the master of a partition answers.
func (l *Ledger) Answers(ctx context.Context, part int) error {
	return redisconn.Classify("ask a silent master", l.client.HLen(ctx, l.keys[part].jobs).Err())
}

// Identities are the ids of all partitions' epochs. A partition whose master does not answer has
// its id in known, or Nobody, and the error is returned too.
func (l *Ledger) Identities(ctx context.Context, known []string) (ids []string, err error) {
	ids = make([]string, len(l.keys))
	if copy(ids, known) == 0 {
		ids = slices.Repeat([]string{Nobody}, len(l.keys))
	}
	var mu sync.Mutex
	l.eachMaster(ctx, l.All(), func(parts []int) {
		var s Sample
		m, failed := l.Master(ctx, parts[0])
		if failed == nil {
			s, failed = l.Identity(ctx, m, parts, strings.TrimPrefix(serverOf(ids[parts[0]]), Nobody)) // these places belong to no other call
		}
		for p, incarnation := range s.Incarnations {
			if failed == nil {
				ids[p] = EpochID(s.Server, incarnation)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		err = cmp.Or(err, failed)
	})
	return ids, err
}

// Fingerprint is a node's text in the roster for the epochs of a master's partitions: the id of an
// only partition's epoch, or else a short digest of the ids.
func (l *Ledger) Fingerprint(parts []int, id func(part int) string) string {
	if len(l.keys) == 1 {
		return id(0)
	}
	all := make([]string, 0, len(parts))
	for _, p := range parts {
		all = append(all, id(p))
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(all, " ", parts)))
	return hex.EncodeToString(sum[:6])
}

// JoinFingerprints joins the fingerprints of all masters, in the order of their first partitions.
func JoinFingerprints(all []string) string { return strings.Join(all, ",") }

// HasFingerprint reports whether a joined text has a fingerprint.
func HasFingerprint(text, one string) bool { return slices.Contains(strings.Split(text, ","), one) }

// eachMaster calls f once for each master of some partitions, with its partitions, and waits for
// all calls. On a Cluster they run at the same time: one pipeline would wait for the slowest
// master.
func (l *Ledger) eachMaster(ctx context.Context, parts []int, f func(parts []int)) {
	cluster, yes := l.client.(*redis.ClusterClient)
	if !yes {
		f(parts)
		return
	}
	groups := make(map[*redis.Client][]int)
	for _, p := range parts {
		master, _ := cluster.MasterForKey(ctx, l.keys[p].jobs) // nil where no master is known: the call itself returns why
		groups[master] = append(groups[master], p)
	}
	var wg sync.WaitGroup
	for _, group := range groups {
		wg.Go(func() { f(group) })
	}
	wg.Wait()
}

// All are all partitions.
func (l *Ledger) All() []int {
	all := make([]int, len(l.keys))
	for p := range all {
		all[p] = p
	}
	return all
}

// rosterText is the roster's text of a node that has reported its runs in the epochs with these
// ids, by partition.
func (l *Ledger) rosterText(ids []string) string {
	parts := make(map[string][]int)
	for p, id := range ids {
		parts[serverOf(id)] = append(parts[serverOf(id)], p)
	}
	var all []string
	for p, id := range ids {
		if of := parts[serverOf(id)]; of[0] == p {
			all = append(all, l.Fingerprint(of, func(part int) string { return ids[part] }))
		}
	}
	return JoinFingerprints(all)
}
