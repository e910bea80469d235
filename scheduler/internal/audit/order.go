package audit

import (
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
)

// fence names the lines whose tokens are compared with each other. Shards of a job, ticks of a job
// whose runs may overlap, and backfills write in any order, so each has a fence of its own.
func (t *trial) fence(w Write) string {
	fence := ""
	if t.allowed() || w.backfilled() {
		fence = w.Tick.String()
	}
	if w.backfilled() {
		fence += " backfill"
	}
	if w.Shards > 1 {
		fence += fmt.Sprint(" shard ", w.Shard)
	}
	return fence
}

// tokens checks the order of writing: the tokens of a fence's accepted lines only grow, refused
// lines were stale, and token and run belong to each other. One finding a run.
func (t *trial) tokens() {
	tops := make(map[string]Write) // by fence
	owner := make(map[int64]*run, len(t.runs))
	token := make(map[*run]int64, len(t.runs))
	reported := make(map[*run]bool)
	for i, w := range t.lines {
		r := t.of[i]
		if w.Refused {
			t.report.Stale++
		}
		if token[r] == 0 {
			token[r] = w.Token
		}
		of := owner[w.Token]
		before := len(t.report.Findings)
		top := tops[t.fence(w)]
		switch {
		case reported[r]:
		case token[r] != w.Token:
			t.add(KindToken, w.Tick, "its run had token %d before: %s", token[r], w)
		case of != nil && of != r:
			t.add(KindToken, w.Tick, "the token of run %s: %s", of.id, w)
		case w.Refused && w.Token >= top.Token:
			t.add(KindToken, w.Tick, "refused, though the greatest token before was %d: %s", top.Token, w)
		case !w.Refused && w.Token < top.Token:
			t.add(KindToken, w.Tick, "not refused, after token %d: %s", top.Token, w)
		}
		reported[r] = reported[r] || len(t.report.Findings) > before
		owner[w.Token] = r
		if w.Token > top.Token {
			tops[t.fence(w)] = w
		}
	}
}

// overlaps checks that no run starts while another run of the job has started and not ended. Shards
// of one tick run at once; with overlap allow, so do runs of different ticks.
func (t *trial) overlaps() {
	if t.job.StartsOnly {
		return
	}
	var going []*run
	for i, w := range t.lines {
		r := t.of[i]
		if w.Phase == End {
			if w.No == lastNo(r.ends) {
				going = without(going, r)
			}
			continue
		}
		for _, other := range slices.Clone(going) {
			if other == r || t.beside(r, other) || (t.allowed() || r.backfilled() || other.backfilled()) && t.line(r) != t.line(other) || t.stale(other, r) || t.stale(r, other) {
				continue
			}
			going = without(going, other) // reported once
			if t.lossAfter(other.starts[0].At) && other.row == nil {
				t.report.Excused++
				continue
			}
			t.add(KindOverlap, w.Tick, "%s, and there was no end of %s", w, other.starts[0])
		}
		going = append(without(going, r), r)
	}
}

// line names the tick or the request that attempts of a run have in common.
func (t *trial) line(r *run) string {
	if g, _ := r.record(); g.request != "" {
		return g.request
	}
	if t.requested(r) {
		return r.id
	}
	return r.starts[0].Tick.String()
}

func lastNo(writes []Write) int {
	if len(writes) == 0 {
		return 0
	}
	return writes[len(writes)-1].No
}

func without(runs []*run, r *run) []*run {
	kept := runs[:0]
	for _, other := range runs {
		if other != r {
			kept = append(kept, other)
		}
	}
	return kept
}

// stale reports whether a run had lost the job before the other run was granted: its recorded end,
// as abandoned or lost, comes before the other's start. A run without a record is stale if the
// guard refused it, and may be stale where records have left the history.
func (t *trial) stale(r, other *run) bool {
	if r.row == nil {
		return r.lease == nil && (r.refused || t.check.cut)
	}
	gone := r.row.Outcome == jobs.OutcomeAbandoned || r.row.Outcome == jobs.OutcomeLost
	if t.Stepped { // decided by the order of the rows
		return gone && (other.row == nil || r.at < other.at)
	}
	return gone && !instant(r.row.At).After(other.starts[0].At.Add(t.Skew))
}

// granted checks the grants at their instants: tokens grow from each to the next, and no run whose
// lease is granted anew works on under a context that has not ended (P4).
func (t *trial) granted() {
	byRun := make(map[string]Grant)
	top := int64(0)
	for _, g := range t.Grants {
		if g.Job != t.job.Name {
			continue
		}
		before, again := byRun[g.Run]
		byRun[g.Run] = g
		if again && before.Token == g.Token {
			continue // the answer is repeated
		}
		if g.Token <= top && !(t.SetBack && slices.ContainsFunc(t.Disturbed, func(d Disturbance) bool { return d.Lossy || d.Loses })) {
			t.add(KindToken, instant(g.Tick), "run %s is granted with token %d, after %d", g.Run, g.Token, top)
		}
		top = max(top, g.Token)
		for _, id := range g.Working {
			other, seen := byRun[id]
			if id == g.Run || seen && g.mayRunBeside(other) {
				continue
			}
			t.add(KindTold, instant(g.Tick), "run %s is granted at %s while run %s works on under a context that has not ended", g.Run, instantText(g.At), id)
		}
	}
}

// mayRunBeside reports whether two granted runs are different shards of one open tick, or, where
// one of them was granted under overlap: allow, of different ticks.
func (g Grant) mayRunBeside(o Grant) bool {
	if g.Allowed || o.Allowed {
		return g.Tick != o.Tick || g.Request != o.Request || g.Shard != o.Shard && g.Shards > 1 && o.Shards > 1
	}
	return g.Shard != o.Shard && g.Of != "" && g.Of == o.Of
}
