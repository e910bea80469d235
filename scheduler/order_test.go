package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// countingIDs makes run-1, run-2, ...
func countingIDs() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprint("run-", n)
	}
}

// readyEngine is an engine with n jobs in parts partitions that trusts Redis' clock to be the machine's.
func readyEngine(t *testing.T, n, parts int) *engine {
	t.Helper()
	all := make([]*job, n)
	for i := range all {
		schedule, err := jobs.ParseSchedule(fmt.Sprintf("@every %ds", 60+i*7%50), "")
		if err != nil {
			t.Fatal(err)
		}
		all[i] = &job{Job: jobs.Job{Name: fmt.Sprintf("job-%03d", i)}, schedule: schedule, part: i * 5 % parts, index: i, place: -1}
	}
	c := newClock(time.Now, time.Minute)
	c.add(time.Now(), time.Now(), time.Now(), "server")
	return newEngine(c, newSlots(n), all, countingIDs(), slog.New(slog.DiscardHandler))
}

// What is due together is asked for, and sent, in order of partition and there of the jobs, whatever the
// order in which the jobs were registered; run ids are drawn in the same order.
func TestEngineSendsInOrder(t *testing.T) {
	for _, parts := range []int{1, 7, 16} {
		seed := rand.Uint64()
		t.Logf("%d partitions, seed %d", parts, seed)
		e := readyEngine(t, 300, parts)
		shuffled := slices.Clone(e.jobs)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		due := time.Now().Add(-time.Second).UnixMilli()
		for _, j := range shuffled {
			j.owned = true
			e.registered(j, due)
		}
		e.fire()
		if len(e.open) != 0 {
			t.Fatalf("%d batches stay open", len(e.open))
		}
		close(e.batches)
		part, claims := -1, 0
		last := make(map[int]int) // partition -> index of the last job in it
		for b := range e.batches {
			if b.part < part {
				t.Errorf("partition %d is sent after %d", b.part, part)
			}
			part = b.part
			for i, j := range b.jobs {
				if before, seen := last[b.part]; j.part != b.part || seen && j.index <= before {
					t.Errorf("partition %d: job %d of partition %d after job %d", b.part, j.index, j.part, before)
				}
				claims++
				if want := fmt.Sprint("run-", claims); b.claims[i].Run != want {
					t.Errorf("job %d runs as %s, want %s", j.index, b.claims[i].Run, want)
				}
				last[b.part] = j.index
			}
		}
		if claims != 300 || len(last) != parts {
			t.Errorf("%d claims in %d partitions, want 300 in %d", claims, len(last), parts)
		}
	}
}

// A claim that stood behind others until it was too old is asked for anew at once; one that Redis refused, a second later.
func TestEngineAsksAnew(t *testing.T) {
	for err, want := range map[error]time.Duration{errNotSent: 0, errors.New("refused"): time.Second} {
		synctest.Test(t, func(t *testing.T) {
			e := readyEngine(t, 1, 1)
			due := time.Now().Add(-time.Minute).UnixMilli()
			e.jobs[0].owned = true
			e.registered(e.jobs[0], due)
			e.fire()
			b := <-e.batches
			b.err = err
			e.hear(b)
			at := time.UnixMilli(e.agenda.first().at)
			if got := max(0, time.Until(at)); got != want {
				t.Errorf("%v: asked for anew in %s, want %s", err, got, want)
			}
		})
	}
}

// Two engines that are told the same end up the same, to the last place in the heap.
func TestOwnFollowsTheOrderOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first []int
		for range 5 {
			e := readyEngine(t, 200, 16)
			owned := make(map[*job]bool)
			for _, j := range e.jobs {
				j.outside, owned[j] = false, true
			}
			e.own(owned, nil)
			var places []int
			for _, j := range e.agenda {
				places = append(places, j.index)
			}
			if first == nil {
				first = places
			}
			if len(places) != 200 || !slices.Equal(first, places) {
				t.Fatalf("the agenda is %v, it was %v", places, first)
			}
		}
	})
}

func TestSettlerFlushesInOrderOfPartition(t *testing.T) {
	s := &settler{out: make(chan []settling, 50)}
	byPart := make(map[int][]settling)
	for p := range 50 {
		byPart[p*13%50] = []settling{{ending: &ending{report: ledger.Report{Tries: p * 13 % 50}}}}
	}
	s.flush(byPart)
	close(s.out)
	want := 0
	for batch := range s.out {
		if got := batch[0].report.Tries; got != want {
			t.Errorf("partition %d goes as number %d", got, want)
		}
		want++
	}
	if want != 50 || len(byPart) != 0 {
		t.Errorf("%d of 50 went, %d stay", want, len(byPart))
	}
}

func TestBackoffBounds(t *testing.T) {
	for try, ms := range []int{50, 100, 200, 400, 800, 1000, 1000, 1000} {
		most := time.Duration(ms) * time.Millisecond
		for i := range 1000 {
			if d := backoff(fmt.Sprint("node-", i), try); d < most/2 || d >= most {
				t.Fatalf("try %d of node %d waits %s, want from %s to below %s", try, i, d, most/2, most)
			}
		}
	}
}

// Nodes that fail at the same instant retry at different ones, spread over the whole range; a node
// that fails again draws anew; and the same once more is the same.
func TestSpread(t *testing.T) {
	at, most := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), 25*time.Millisecond
	for name, one := range map[string]func(i int) time.Duration{
		"ids":      func(i int) time.Duration { return spread(fmt.Sprint("0191f1a2-7b3c-7d4e-8f50-", i), at, most) },
		"instants": func(i int) time.Duration { return spread("n", at.Add(time.Duration(i)*time.Millisecond), most) },
	} {
		var tenths [10]int
		seen := make(map[time.Duration]bool)
		for i := range 2000 {
			d := one(i)
			if d < 0 || d >= most {
				t.Fatalf("%s: %s is not from 0 to below %s", name, d, most)
			}
			if d != one(i) {
				t.Fatalf("%s: asked twice, answered differently", name)
			}
			tenths[d*10/most]++
			seen[d] = true
		}
		if least := slices.Min(tenths[:]); least < 140 || len(seen) < 1990 {
			t.Errorf("%s: %v in the tenths of the range, want about 200 in each; %d different ones", name, tenths, len(seen))
		}
	}
}

// At one instant, two nodes wait differently and so do two tries of one, but the same try waits the same.
func TestBackoffFollowsFromItsArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where the clock stands still
		one := backoff("a", 5)
		if one != backoff("a", 5) {
			t.Error("the same try waits differently when it is asked again")
		}
		if one == backoff("b", 5) || one == backoff("a", 6) {
			t.Error("two nodes, or two tries, wait equally long")
		}
	})
}

func TestSuccessorFollowsFromTheRun(t *testing.T) {
	seen := make(map[string]bool)
	id := "0191f1a2-7b3c-7d4e-8f50-123456789abc"
	for range 100 { // handed back again and again
		if seen[id] {
			t.Fatalf("%s comes twice", id)
		}
		seen[id] = true
		fresh := ledger.Successor(id)
		if fresh != ledger.Successor(id) {
			t.Fatalf("%s is handed back under two ids", id)
		}
		id = fresh
	}
}
