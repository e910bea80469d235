package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/sharding"
)

const (
	// announceEvery is how often a node says again what it holds: what nobody says for ledger.AnnouncedFor leaves.
	announceEvery = time.Hour
	// tidyAfter is when a node looks for the first time for what has to leave; then it does so as often.
	tidyAfter = time.Minute
)

// announcement is what a node holds. It does not change.
type announcement struct {
	version int              // of the node's jobs
	chunks  [][]ledger.Chunk // by partition
	set     string           // digest of names
	names   map[string]string
}

// announcer keeps what the node holds announced in every partition, and tidies those that are the node's. The registrar calls it;
// what is announced others may read.
type announcer struct {
	n      *Cluster
	now    atomic.Pointer[announcement] // what is announced; nil before the node joins
	next   []time.Time                  // by partition, when it is announced again
	tidied []time.Time                  // by partition, when it is tidied again
}

func newAnnouncer(n *Cluster) *announcer {
	a := &announcer{n: n, next: make([]time.Time, n.Ledger.Partitions())}
	for range a.next {
		a.tidied = append(a.tidied, time.Now().Add(tidyAfter))
	}
	return a
}

// holds lists what the node holds now.
func (a *announcer) holds() *announcement {
	of := &announcement{version: a.n.Jobs.Version(), names: make(map[string]string)}
	held := make(map[string]string, a.n.Jobs.Len())
	for _, j := range a.n.Jobs.All() {
		held[j.Name] = j.Digest
	}
	of.chunks = a.n.Ledger.Chunks(held)
	for _, chunks := range of.chunks {
		for _, c := range chunks {
			of.names[refOf(c)] = c.Digest
		}
	}
	of.set = roster.SetDigest(of.names)
	return of
}

// known is what the node itself holds: it need not be read, and may not be there to be read yet.
func (of *announcement) known() known {
	k := known{map[string]map[string]string{of.set: of.names}, make(map[string]map[string]string)}
	for _, chunks := range of.chunks {
		for _, c := range chunks {
			k.chunks[c.Digest] = c.Jobs
		}
	}
	return k
}

// again has everything announced: Redis may have lost it.
func (a *announcer) again() { clear(a.next) }

// announce says what the node holds where its time has come, and everywhere when the node has other jobs. A partition that is
// closed, or whose master is unreachable, has its turn again with the next call.
func (a *announcer) announce(ctx context.Context) error {
	now, of := time.Now(), a.now.Load()
	changed := of == nil || of.version != a.n.Jobs.Version()
	if changed {
		of = a.holds()
		a.again()
	}
	for part, chunks := range of.chunks {
		if len(chunks) == 0 || now.Before(a.next[part]) {
			continue
		}
		err := a.n.Lanes.At("register", part, func() error { return a.announceIn(ctx, chunks) })
		switch {
		case err == nil:
			a.next[part] = now.Add(announceEvery)
		case !errors.Is(err, lane.ErrBreaker) && !errors.Is(err, ledger.ErrClosed):
			return err
		}
	}
	if !changed {
		return nil
	}
	if err := a.n.Roster.Announce(ctx, of.set, of.names); err != nil {
		return redisconn.Classify("announce the node's jobs", err)
	}
	a.now.Store(of)
	wait.Signal(a.n.Beat) // the others are to know which set it is
	return nil
}

// announceIn announces chunks of one partition, each call bounded by itself: there may be many.
func (a *announcer) announceIn(ctx context.Context, chunks []ledger.Chunk) error {
	call, cancel := context.WithTimeout(ctx, lane.CallTimeout+time.Duration(len(chunks))*10*time.Millisecond)
	defer cancel()
	return a.n.Ledger.Announce(call, a.n.Generation, a.n.Revision, chunks)
}

// tidy takes away what nobody holds any more in the partitions for which this node goes first.
func (a *announcer) tidy(ctx context.Context) error {
	now := time.Now()
	for part := range a.tidied {
		if now.Before(a.tidied[part]) || a.n.Moves.isClosed() {
			continue
		}
		a.tidied[part] = now.Add(announceEvery)
		if first, ok := sharding.Owner(fmt.Sprint("partition ", part), a.n.View.Living()); !ok || first.ID != a.n.ID {
			continue
		}
		err := a.n.Lanes.At("register", part, func() error { return a.n.Ledger.Tidy(ctx, part, a.n.Clock.Now().UnixMilli()) })
		if err != nil && !errors.Is(err, lane.ErrBreaker) && !errors.Is(err, ledger.ErrClosed) {
			return err
		}
	}
	return nil
}
