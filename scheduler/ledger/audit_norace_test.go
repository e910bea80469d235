//go:build !race

package ledger

import (
	"slices"
	"testing"
)

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
