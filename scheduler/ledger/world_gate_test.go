package ledger

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Gates in the random trace: who may make new jobs, and what a move has closed.

// neo marks the digests of the second generation: a definition with the same settings has another digest there.
const neo = "neo:"

// ofBoth gives every schedule to both generations.
func ofBoth(all map[string]rhythm) map[string]rhythm {
	for digest, r := range maps.Clone(all) {
		all[neo+digest] = r
	}
	return all
}

func generationOf(digest string) string {
	if strings.HasPrefix(digest, neo) {
		return "neo"
	}
	return ""
}

// otherGeneration is the digest of the same settings in the other generation.
func otherGeneration(digest string) string {
	if own, ok := strings.CutPrefix(digest, neo); ok {
		return own
	}
	return neo + digest
}

// gateAt reads a gate as it is stored, and says whether it is open. One that nobody can read is closed, as foreign.
func gateAt(stored string) (gate, bool) {
	if stored == "" {
		return gate{state: gateOpen}, true
	}
	f := strings.SplitN(stored, "|", 6)
	epoch, err := strconv.ParseInt(append(f, "")[1], 10, 64)
	if len(f) != 6 || f[0] != "1" || err != nil {
		return gate{state: "foreign"}, false
	}
	return gate{epoch: epoch, generation: f[2], state: f[3], move: f[4], words: f[5]}, f[3] == gateOpen
}

// setGate stores a gate; "" takes it away.
func setGate(ctx context.Context, client *redis.Client, key, stored string) error {
	if stored == "" {
		return client.Del(ctx, key).Err()
	}
	return client.Set(ctx, key, stored, 0).Err()
}

// guarded is what a closed gate refuses.
var guarded = []string{"define", "trigger", "rerun", "rewind", "remove", "pause", "resume", "follow", "unfollow", "relay"}

// atGate makes up what has to do with gates: at times one is set, and while one is closed it is opened soon, and what it
// refuses is asked for more often.
func (w *world) atGate(tb testing.TB, o op) (made op, ok, done bool) {
	tb.Helper()
	shut := -1
	for p, stored := range w.view.gates {
		if _, open := gateAt(stored); !open {
			shut = p
		}
	}
	switch n := w.rng.IntN(100); {
	case shut >= 0 && n < 10:
		o.kind, o.part, o.gate = "gate", shut, w.gate(gateOpen)
		return o, true, true
	case shut >= 0 && n < 20:
		o, ok = w.askBehind(shut, o)
		return o, ok, true
	case shut >= 0 && n < 50:
		here := keepIf(w.view.names, func(job string) bool { return Partition(job, tracePartitions) == shut })
		if w.view.names = here; len(here) == 0 {
			return o, false, false
		}
		o, ok = w.oneOf(tb, pick(w, guarded), o)
		return o, ok && (o.kind != "unfollow" || Partition(o.upstream, tracePartitions) == shut), true // else nobody would follow for long
	case shut < 0 && n < 2:
		return w.setGate(o), true, true
	case n == 99:
		return w.raise(o), true, true
	}
	return o, false, false
}

// askBehind asks again for what was granted before a partition was closed.
func (w *world) askBehind(part int, o op) (op, bool) {
	for _, a := range w.claims {
		live := slices.ContainsFunc(w.view.leased, func(l Lease) bool { return l.Run == a.claim.Run && l.Node == a.by.ID })
		if live && Partition(a.claim.Job, tracePartitions) == part && w.chance(50) {
			o.kind, o.by, o.claims = "claim", a.by, []Claim{a.claim}
			return o, true
		}
	}
	return o, false
}

// setGate sets the gate of one partition.
func (w *world) setGate(o op) op {
	o.kind, o.part = "gate", w.rng.IntN(tracePartitions)
	switch n := w.rng.IntN(20); {
	case n == 0:
		o.gate = ""
	case n == 1:
		o.gate = pick(w, []string{"2|what|ever", "1|0||", "1|x||open||", "1|0||open|no more"})
	default:
		o.gate = w.gate(pick(w, []string{gateOpen, gateOpen, gateSealed, gateSealed, gateFilling, gateBurnt}))
	}
	return o
}

// promotes makes following, at times, part of a promotion: of the last one, mostly.
func (w *world) promotes(o *op) {
	if o.promotes = w.chance(20); o.promotes {
		g, _ := gateAt(w.view.gates[Partition(o.upstream, tracePartitions)])
		o.epoch = max(0, g.epoch+pick(w, []int64{0, 0, 1, -1}))
	}
}

// raise brings a promotion to all partitions: the next one, or at times the last or an older one.
func (w *world) raise(o op) op {
	o.kind = "raise"
	for _, stored := range w.view.gates {
		g, _ := gateAt(stored)
		o.raise.Epoch = max(o.raise.Epoch, g.epoch)
	}
	o.raise.Epoch = max(0, o.raise.Epoch+pick(w, []int64{1, 1, 0, -1}))
	o.raise.Generation, o.raise.Pattern = pick(w, []string{"", "neo"}), pick(w, []string{"", "a*"})
	return o
}

func (w *world) gate(state string) string {
	g := gate{epoch: w.rng.Int64N(3), generation: pick(w, []string{"", "", "neo"}), state: state}
	if state != gateOpen {
		g.move, g.words = "move-1", pick(w, []string{"10.0.0.7:6379", "", "a\nb"})
	}
	return g.String()
}
