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

// TestAuditFindsCorruption spoils true books in each way that is wrong for certain, often.
func TestAuditFindsCorruption(t *testing.T) {
	const wanted = 40 // times that each has to be found
	for _, c := range slices.Concat(corruptions, shardCorruptions) {
		t.Run(c.name, func(t *testing.T) {
			done := 0
			for seed := uint64(0); seed < 6000 && done < wanted; seed++ {
				s := newStory(seed)
				for range 20 + s.rng.IntN(100) {
					s.next()
				}
				before := s.String()
				if !c.spoil(s) {
					continue
				}
				done++
				found := s.audit()
				if !slices.ContainsFunc(found, func(v Violation) bool { return c.promise == "" || v.Promise == c.promise }) {
					t.Fatalf("seed %d: found %s\nbefore:\n%s\nspoilt:\n%s", seed, show(found), before, s)
				}
				for _, v := range found {
					if v.Job != "a" || v.What == "" || len(v.Evidence) == 0 || slices.Contains(v.Evidence, "") {
						t.Fatalf("seed %d: without evidence: %+v", seed, v)
					}
				}
			}
			if done < wanted {
				t.Errorf("only %d stories had something to spoil", done)
			}
		})
	}
}
