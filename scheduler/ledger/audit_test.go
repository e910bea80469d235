package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAuditOfTrueBooks: whatever happened, true books show no violation, and every instant between.
func TestAuditOfTrueBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(0, 150).Draw(t, "length") {
			s.next()
			if wrong := s.audit(); len(wrong) > 0 {
				t.Fatalf("%s\n%s", show(wrong), s)
			}
		}
	})
}

func show(wrong []Violation) string {
	var b strings.Builder
	for _, v := range wrong {
		fmt.Fprintf(&b, "%s %s: %s\n", v.Promise, v.Job, v.What)
		for _, e := range v.Evidence {
			fmt.Fprintf(&b, "    %s\n", e)
		}
	}
	return b.String()
}

// places are the rows that are so.
func (s *story) places(ok func(r Row) bool) []int {
	var out []int
	for i, r := range s.rows {
		if ok(r) {
			out = append(out, i)
		}
	}
	return out
}

// row picks one of them to be changed, nil when there is none.
func (s *story) row(ok func(r Row) bool) *Row {
	all := s.places(ok)
	if len(all) == 0 {
		return nil
	}
	return &s.rows[all[s.rng.IntN(len(all))]]
}

// Rows of the chain from its base on: older ones are beyond the promise of the books.
func (s *story) inChain(r Row) bool {
	for _, k := range stepsOf(s.entry, s.rows, s.open) {
		if k.row != nil && k.row.Prev == r.Prev && k.row.At == r.At && k.row.Run == r.Run && k.row.Reason == r.Reason {
			return true
		}
	}
	return false
}

// first and latest are the rows of the first and the last step, nil when that is no row.
func (s *story) first() *Row {
	if all := stepsOf(s.entry, s.rows, s.open); len(all) > 0 {
		return all[0].row
	}
	return nil
}

func (s *story) latest() *Row {
	if all := stepsOf(s.entry, s.rows, s.open); len(all) > 0 {
		return all[len(all)-1].row
	}
	return nil
}

func (s *story) stepRun(r Row) bool { return r.ran() && r.Prev != 0 && s.inChain(r) }
func (s *story) passed(r Row) bool  { return r.Ranged && !r.turns() && s.inChain(r) }

// since says that the schedule of a row of the chain is the stored one.
func (s *story) since(r Row) bool {
	for i := len(s.rows) - 1; i >= 0 && !s.rows[i].replaces(); i-- {
		if s.rows[i].At == r.At && s.rows[i].Prev == r.Prev && s.rows[i].Run == r.Run {
			return true
		}
	}
	return false
}

func (s *story) cut() bool { return newAudit(s.entry, s.def, s.rows, s.open).cut }

func (s *story) drop(ok func(r Row) bool) bool {
	all := s.places(ok)
	if len(all) == 0 {
		return false
	}
	i := all[s.rng.IntN(len(all))]
	s.rows = slices.Delete(s.rows, i, i+1)
	return true
}

func (s *story) change(ok func(r Row) bool, how func(r *Row)) bool {
	r := s.row(ok)
	if r != nil {
		how(r)
	}
	return r != nil
}
