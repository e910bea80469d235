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
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// announceEvery is how often a node repeats its announcements. Definitions that no node announces
	// for ledger.AnnouncedFor are removed.
	announceEvery = time.Hour
	// tidyAfter is how long a node waits before it first removes definitions without a node. Then it
	// does so every announceEvery.
	tidyAfter = time.Minute
)

// announcement lists a node's definitions. It does not change.
type announcement struct {
	version int              // Version of the node's jobs
	chunks  [][]define.Chunk // by partition
	set     string           // the digest of names
	names   map[string]string
}

// announcerConfig holds the dependencies of an announcer.
type announcerConfig struct {
	id, generation string
	ledger         *ledger.Ledger
	roster         *roster.Roster
	lanes          interface {
		At(role string, part int, call func() error) error
	}
	jobs  *work.Jobs
	view  *LatestView
	moves *Moves
	clock Clock
	beat  chan<- struct{} // holds one signal: send a heartbeat now
}

// announcer keeps the node's jobs announced in every partition, and tidies the partitions that
// this node owns. Only the registrar calls it; other goroutines may read the
// announcement.
type announcer struct {
	announcerConfig
	now    atomic.Pointer[announcement] // the announcement; nil before the node joins
	next   []time.Time                  // by partition, when it is announced again
	tidied []time.Time                  // by partition, when it is tidied again
}

func newAnnouncer(c announcerConfig) *announcer {
	a := &announcer{announcerConfig: c, next: make([]time.Time, c.ledger.Partitions())}
	for range a.next {
		a.tidied = append(a.tidied, time.Now().Add(tidyAfter))
	}
	return a
}

// holds lists the node's definitions of now.
func (a *announcer) holds() *announcement {
	of := &announcement{version: a.jobs.Version(), names: make(map[string]string)}
	held := make(map[string]string, a.jobs.Len())
	for _, j := range a.jobs.All() {
		held[j.Name] = j.Digest
	}
	of.chunks = define.Chunks(a.ledger, held)
	for _, chunks := range of.chunks {
		for _, c := range chunks {
			of.names[refOf(c)] = c.Digest
		}
	}
	of.set = roster.SetDigest(of.names)
	return of
}

// known returns the node's own definitions. They are not read from Redis, which may not have them yet.
func (of *announcement) known() known {
	k := known{map[string]map[string]string{of.set: of.names}, make(map[string]map[string]string)}
	for _, chunks := range of.chunks {
		for _, c := range chunks {
			k.chunks[c.Digest] = c.Jobs
		}
	}
	return k
}

// repeat makes the next call announce everything, because Redis may have lost it.
func (a *announcer) repeat() { clear(a.next) }

// announce announces what is due, and everything when the node's jobs have changed. A partition
// that is sealed, or whose master is unreachable, comes with the next call.
func (a *announcer) announce(ctx context.Context) error {
	now, of := time.Now(), a.now.Load()
	changed := of == nil || of.version != a.jobs.Version()
	if changed {
		of = a.holds()
		a.repeat()
	}
	for part, chunks := range of.chunks {
		if len(chunks) == 0 || now.Before(a.next[part]) {
			continue
		}
		err := a.lanes.At("register", part, func() error { return a.announceIn(ctx, chunks) })
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
	if err := a.roster.Announce(ctx, of.set, of.names); err != nil {
		return redisconn.Classify("announce the node's jobs", err)
	}
	a.now.Store(of)
	wait.Signal(a.beat) // the other nodes must learn the new set
	return nil
}

// announceIn announces chunks of one partition. Each call has a timeout of its own, because there
// may be many chunks.
func (a *announcer) announceIn(ctx context.Context, chunks []define.Chunk) error {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout+time.Duration(len(chunks))*10*time.Millisecond)
	defer cancel()
	return define.Announce(call, a.ledger, a.generation, a.jobs.Revision(), chunks)
}

// tidy removes definitions that no node holds any more, in the partitions that this node owns.
func (a *announcer) tidy(ctx context.Context) error {
	now := time.Now()
	for part := range a.tidied {
		if now.Before(a.tidied[part]) || a.moves.isClosed() {
			continue
		}
		a.tidied[part] = now.Add(announceEvery)
		if first, ok := sharding.Owner(fmt.Sprint("partition ", part), a.view.Living()); !ok || first.ID != a.id {
			continue
		}
		err := a.lanes.At("register", part, func() error { return define.Tidy(ctx, a.ledger, part, a.clock.Now().UnixMilli()) })
		if err != nil && !errors.Is(err, lane.ErrBreaker) && !errors.Is(err, ledger.ErrClosed) {
			return err
		}
	}
	return nil
}
