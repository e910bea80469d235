package verify

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

// tokens checks what the order of writing tells: the tokens of accepted lines of a fence only grow, what the
// guard refused was stale, and token and run belong to each other. One finding a run.
func (t *trial) tokens() {
	tops := make(map[string]Write) // by fence
	owner := make(map[int64]*run, len(t.runs))
	told := make(map[*run]bool)
	for i, w := range t.lines {
		r := t.of[i]
		if w.Refused {
			t.report.Stale++
		}
		of := owner[w.Token]
		before := len(t.report.Findings)
		top := tops[w.fence()]
		switch {
		case told[r]:
		case r.token != w.Token:
			t.add(KindToken, w.Tick, "its run had token %d before: %s", r.token, w)
		case of != nil && of != r:
			t.add(KindToken, w.Tick, "the token of run %s: %s", of.id, w)
		case w.Refused && w.Token >= top.Token:
			t.add(KindToken, w.Tick, "refused, though the greatest token before was %d: %s", top.Token, w)
		case !w.Refused && w.Token < top.Token:
			t.add(KindToken, w.Tick, "not refused, after token %d: %s", top.Token, w)
		}
		told[r] = told[r] || len(t.report.Findings) > before
		owner[w.Token] = r
		if w.Token > top.Token {
			tops[w.fence()] = w
		}
	}
}

// overlaps checks that no run starts while another one of the job has started and not ended. Shards of one tick run
// at once.
func (t *trial) overlaps() {
	if t.job.Overlaps || t.job.StartsOnly {
		return
	}
	var going []*run
	for i, w := range t.lines {
		r := t.of[i]
		if r.end == &t.lines[i] {
			going = without(going, r)
		}
		if w.Phase != Start {
			continue
		}
		for _, other := range slices.Clone(going) {
			if other == r || w.beside(other.starts[0]) || stale(other, r) || stale(r, other) {
				continue
			}
			going = without(going, other) // told once
			if t.lossAfter(other.starts[0].At) && other.row == nil {
				t.report.Excused++
				continue
			}
			t.add(KindOverlap, w.Tick, "%s, and there was no end of %s", w, other.starts[0])
		}
		going = append(without(going, r), r)
	}
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

// stale says that a run had lost the job before the other one was granted: its recorded end, as
// abandoned or lost, stands before the other's. A run without any record is stale if the guard
// treated it so.
func stale(r, other *run) bool {
	if r.row == nil {
		return r.refused && r.lease == nil
	}
	gone := r.row.Outcome == jobs.OutcomeAbandoned || r.row.Outcome == jobs.OutcomeLost
	return gone && (other.row == nil || r.at < other.at)
}
