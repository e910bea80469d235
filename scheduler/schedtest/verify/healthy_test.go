package verify

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHealthyCaseHasNoFinding(t *testing.T) {
	r := Check(healthy(t))
	if len(r.Findings) > 0 || r.Ticks != 90 || r.Verdicts[Satisfied] != 90 || r.Runs != 93 || r.Stale+r.Excused != 0 || r.WorstLag != 20*ms {
		t.Errorf("%s worst lag %v", show(r), r.WorstLag)
	}
}

// TestOrderOfWritingCounts, not the order in which the lines are handed over.
func TestOrderOfWritingCounts(t *testing.T) {
	c := healthy(t)
	slices.Reverse(c.Writes)
	if r := Check(c); len(r.Findings) > 0 {
		t.Error(show(r))
	}
}

// TestWhatMayHappenIsNoFinding lets much happen that is nobody's fault.
func TestWhatMayHappenIsNoFinding(t *testing.T) {
	seen := make(map[Verdict]int)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := Check(eventful(seeded(seed)))
		if len(r.Findings) > 0 {
			t.Fatalf("seed %d: %s", seed, show(r))
		}
		for v, n := range r.Verdicts {
			seen[v] += n
		}
	})
	t.Log(seen)
	for _, v := range []Verdict{Satisfied, Delayed, Missed, Skipped, Superseded} {
		if seen[v] == 0 {
			t.Errorf("no tick was %s: the cases are too tame", v)
		}
	}
}

func TestCheckIsQuickEnough(t *testing.T) {
	c := fiveJobs()
	begin := time.Now()
	const times = 100
	for range times {
		if r := Check(c); len(r.Findings) > 0 {
			t.Fatal(show(r))
		}
	}
	each := time.Since(begin) / times
	t.Logf("5 jobs, 30 s: %v", each)
	if each > 20*ms { // ten times what is wanted: machines differ
		t.Errorf("5 jobs, 30 s: %v", each)
	}
}

func fiveJobs() Case {
	c := blank()
	until := after(30 * time.Second)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		play(&c, plan{name: name, schedule: mustEvery(time.Second), lasts: func() time.Duration { return 50 * ms },
			lag: func() time.Duration { return 10 * ms }}, until)
	}
	return finish(c, until)
}

func BenchmarkCheck(b *testing.B) {
	c := fiveJobs()
	b.ReportAllocs()
	for b.Loop() {
		Check(c)
	}
}
