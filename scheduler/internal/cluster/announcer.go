package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

const (
	// announceEvery is how often a node says again what it holds: what nobody says for ledger.AnnouncedFor leaves.
	announceEvery = time.Hour
	// tidyAfter is when a node looks for the first time for what has to leave; then it does so as often.
	tidyAfter = time.Minute
)

// announcer keeps what the node holds announced in every partition, and tidies those that are the node's.
type announcer struct {
	n      *Cluster
	chunks [][]ledger.Chunk // by partition
	set    string           // digest of names
	names  map[string]string
	next   []time.Time // by partition, when it is announced again
	tidied []time.Time // by partition, when it is tidied again
}

func newAnnouncer(n *Cluster) *announcer {
	held := make(map[string]string, len(n.Jobs.All))
	for _, j := range n.Jobs.All {
		held[j.Name] = j.Digest
	}
	a := &announcer{n: n, names: make(map[string]string)}
	if n.Ledger != nil {
		a.chunks = n.Ledger.Chunks(held)
	}
	for _, of := range a.chunks {
		for _, c := range of {
			a.names[refOf(c)] = c.Digest
		}
		a.next, a.tidied = append(a.next, time.Time{}), append(a.tidied, time.Now().Add(tidyAfter))
	}
	a.set = sharding.SetDigest(a.names)
	return a
}

// known is what the node itself holds: it need not be read, and may not be there to be read yet.
func (a *announcer) known() known {
	k := known{map[string]map[string]string{a.set: a.names}, make(map[string]map[string]string)}
	for _, of := range a.chunks {
		for _, c := range of {
			k.chunks[c.Digest] = c.Jobs
		}
	}
	return k
}

// again has everything announced: Redis may have lost it.
func (a *announcer) again() { clear(a.next) }

// announce says what the node holds where its time has come. A partition that is closed, or whose master is unreachable, has its
// turn again with the next call.
func (a *announcer) announce(ctx context.Context) error {
	now := time.Now()
	for part, chunks := range a.chunks {
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
