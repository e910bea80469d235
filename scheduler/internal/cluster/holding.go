package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/sharding"
)

// Holding lists the jobs of the nodes with one set of chunks, with the digests of their
// definitions. It does not change.
type Holding struct {
	places [][]place // some of it could not be read
	unread bool      // some of it could not be read
}

// place is one chunk of a partition. Its jobs are nil when it could not be read.
type place struct {
	chunk string // its digest; "" for none
	jobs  map[string]string
}

// Digest returns the digest of the definition in which a job is held, "" for none. known is false
// when the job's chunk could not be read.
func (h *Holding) Digest(job string) (digest string, known bool) {
	if h == nil {
		return "", false
	}
	of := h.places[ledger.Partition(job, len(h.places))]
	if len(of) == 0 {
		return "", true
	}
	p := of[define.Place(job, len(of))]
	return p.jobs[job], p.chunk == "" || p.jobs != nil
}

// Holds reports whether a job is known to be held in this definition.
func (h *Holding) Holds(job, digest string) bool {
	held, _ := h.Digest(job)
	return held == digest
}

// Complete reports whether all of it could be read.
func (h *Holding) Complete() bool { return h != nil && !h.unread }

// All iterates over the jobs that are known to be held, with the digests of their definitions.
func (h *Holding) All() iter.Seq2[string, string] {
	return func(yield func(job, digest string) bool) {
		if h == nil {
			return
		}
		for _, of := range h.places {
			for _, p := range of {
				for job, digest := range p.jobs {
					if !yield(job, digest) {
						return
					}
				}
			}
		}
	}
}

// refOf names a chunk in a set: its partition, the partition's number of chunks, and its place
// among them.
func refOf(c define.Chunk) string { return fmt.Sprintf("%d/%d/%d", c.Part, c.Of, c.Place) }

// parseRef reads such a name; false for any other text.
func parseRef(name string, partitions int) (c define.Chunk, ok bool) {
	if _, err := fmt.Sscanf(name, "%d/%d/%d", &c.Part, &c.Of, &c.Place); err != nil {
		return c, false
	}
	of := c.Of > 0 && c.Of <= 1<<16 && c.Of&(c.Of-1) == 0
	return c, of && c.Part >= 0 && c.Part < partitions && c.Place >= 0 && c.Place < c.Of
}

// known are sets of chunk digests by name, and the contents of chunks by digest. A digest names
// unchanging content, so nothing is read twice.
type known struct{ sets, chunks map[string]map[string]string }

// reader reads chunks by partition. With an error, the readable chunks are returned too.
type reader func(ctx context.Context, wanted map[int][]string) (map[string]map[string]string, error)

// everything needs all chunks: a node may go first for any of its jobs.
func everything(define.Chunk) bool { return true }

// holdings reads the nodes' jobs from the needed chunks, except for the ones in old.
// unread counts the sets that could not be read.
func holdings(ctx context.Context, of *roster.Roster, partitions int, nodes []sharding.Node, old known, needs Need, read reader,
) (all map[string]*Holding, now known, unread int, err error) {
	now = known{make(map[string]map[string]string), make(map[string]map[string]string)}
	var missing []string
	for _, n := range nodes {
		if set := old.sets[n.Set]; set != nil {
			now.sets[n.Set] = set
		} else if !slices.Contains(missing, n.Set) {
			missing = append(missing, n.Set)
		}
	}
	if len(missing) > 0 {
		sets, err := of.Sets(ctx, missing)
		if err != nil && !errors.Is(err, roster.ErrDamaged) {
			return nil, now, 0, redisconn.Classify("read what nodes hold", err)
		}
		unread = len(missing) - len(sets)
		maps.Copy(now.sets, sets)
	}
	wanted := make(map[int][]string)
	for _, set := range now.sets {
		for name, chunk := range set {
			c, ok := parseRef(name, partitions)
			switch jobs := old.chunks[chunk]; {
			case jobs != nil:
				now.chunks[chunk] = jobs
			case ok && needs(c) && !slices.Contains(wanted[c.Part], chunk):
				wanted[c.Part] = append(wanted[c.Part], chunk)
			}
		}
	}
	if len(wanted) > 0 {
		for _, chunks := range wanted { // so that a simulation repeats itself
			slices.Sort(chunks)
		}
		var chunks map[string]map[string]string
		chunks, err = read(ctx, wanted)
		maps.Copy(now.chunks, chunks)
	}
	all = make(map[string]*Holding, len(now.sets))
	for name, set := range now.sets {
		all[name] = now.holding(set, partitions)
	}
	return all, now, unread, err
}

// holding puts a set and its chunks together.
func (k known) holding(set map[string]string, partitions int) *Holding {
	h := &Holding{places: make([][]place, partitions)}
	for name, chunk := range set {
		c, ok := parseRef(name, partitions)
		if !ok {
			h.unread = true // a newer version's
			continue
		}
		if of := &h.places[c.Part]; len(*of) < c.Of {
			*of = append(*of, make([]place, c.Of-len(*of))...)
		}
		h.places[c.Part][c.Place] = place{chunk, k.chunks[chunk]}
		h.unread = h.unread || k.chunks[chunk] == nil
	}
	return h
}
