// Package epoch is a node's side of a change of epochs: it reads the identity of masters, and after
// a failover reports the node's runs (Reassert) and cursors (Recall) again.
package epoch

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

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Identity reads a master's id and the incarnations of some of its partitions, see Recognize. known
// is the id that the caller has, which it returns with an error. After an error a Cluster client
// reads the topology again.
func Identity(ctx context.Context, l *ledger.Ledger, m ledger.Master, parts []int, known string) (s ledger.Sample, err error) {
	defer func() { redisconn.Refresh(ctx, l.Client, err) }()
	call, cancel := bounded(ctx, l)
	defer cancel()
	s, err = l.SampleOf(call, m.Client, "", parts)
	switch {
	case err != nil:
		return ledger.Sample{Server: known}, redisconn.Classify("ask who it is", err)
	case s.Server == ledger.Replica && l.Clustered():
		return ledger.Sample{Server: known}, fmt.Errorf("%w: the server is a replica now", locking.ErrUnreachable)
	}
	s.Server, err = Recognize(ctx, l, m, parts[0], s.Server, known)
	return s, err
}

// Recognize returns the id of a master from now on: the given one, or known with an error while the
// master takes no writes, because it loads its data or lacks replicas. Without a known id, "", any
// id will do.
func Recognize(ctx context.Context, l *ledger.Ledger, m ledger.Master, part int, id, known string) (string, error) {
	if known == "" || id == "" || id == known {
		return id, nil
	}
	if err := Writable(ctx, l, m, part); err != nil {
		return known, err
	}
	return id, nil
}

// Writable returns nil when a master takes writes for a partition. A master of a Cluster has
// WhoTimeout, 400 ms, to answer.
func Writable(ctx context.Context, l *ledger.Ledger, m ledger.Master, part int) error {
	ctx, cancel := bounded(ctx, l)
	defer cancel()
	return redisconn.Classify("ask whether writes are taken", m.Client.Set(ctx, l.Keys[part].Confirm, "", time.Second).Err())
}

// Answers returns nil when the master of a partition answers.
func Answers(ctx context.Context, l *ledger.Ledger, part int) error {
	return redisconn.Classify("ask a silent master", l.Client.HLen(ctx, l.Keys[part].Jobs).Err())
}

// Identities are the ids of all partitions' epochs. A partition whose master does not answer has
// its id in known, or else the id "?", and the error is returned too.
func Identities(ctx context.Context, l *ledger.Ledger, known []string) (ids []string, err error) {
	ids = make([]string, len(l.Keys))
	if copy(ids, known) == 0 {
		ids = slices.Repeat([]string{Nobody}, len(l.Keys))
	}
	var mu sync.Mutex
	l.EachMaster(ctx, l.All(), func(parts []int) {
		var s ledger.Sample
		m, failed := l.Master(ctx, parts[0])
		if failed == nil {
			s, failed = Identity(ctx, l, m, parts, strings.TrimPrefix(ledger.ServerOf(ids[parts[0]]), Nobody)) // these places belong to no other call
		}
		for p, incarnation := range s.Incarnations {
			if failed == nil {
				ids[p] = ledger.EpochID(s.Server, incarnation)
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
func Fingerprint(l *ledger.Ledger, parts []int, id func(part int) string) string {
	if len(l.Keys) == 1 {
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

// RosterText is the roster's text of a node that has reported its runs in the epochs with these
// ids, by partition.
func RosterText(l *ledger.Ledger, ids []string) string {
	parts := make(map[string][]int)
	for p, id := range ids {
		parts[ledger.ServerOf(id)] = append(parts[ledger.ServerOf(id)], p)
	}
	var all []string
	for p, id := range ids {
		if of := parts[ledger.ServerOf(id)]; of[0] == p {
			all = append(all, Fingerprint(l, of, func(part int) string { return ids[part] }))
		}
	}
	return JoinFingerprints(all)
}

// Nobody is the id of a master that has not answered yet: scripts refuse a caller with this id.
const Nobody = "?"

// WhoTimeout bounds each question to a master of a Cluster about itself.
const WhoTimeout = 400 * time.Millisecond

func bounded(ctx context.Context, l *ledger.Ledger) (context.Context, context.CancelFunc) {
	if !l.Clustered() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, WhoTimeout)
}
