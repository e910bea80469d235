package schedtest_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

var (
	oneSeed  = flag.Uint64("sim.seed", 0, "simulate this seed only and tell its story")
	seeds    = flag.Int("sim.seeds", defaultSeeds, "how many seeds TestSim simulates")
	first    = flag.Uint64("sim.first", 1, "the first of them")
	digests  = flag.String("sim.digests", "", "write each seed's digest to this file")
	stopping = flag.Int("sim.failures", 5, "stop after so many failing seeds")
)

// enough is how many seeds must have shown everything in schedtest.Sometimes.
const enough = 500

// TestSim simulates random plans. A failing seed prints its findings and how to replay it; the first one its
// story too.
func TestSim(t *testing.T) {
	if *oneSeed != 0 {
		r := schedtest.Run(t, planOf(*oneSeed))
		t.Logf("%s\n%s\ndigest %s", r, r.Seen, r.Digest)
		return
	}
	s := &suite{t: t, digests: make([]string, *seeds), seen: schedtest.Counters{}, verdicts: make(map[verify.Verdict]int)}
	s.next.Store(*first)
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	t.Logf("%d seeds in %s: %s", s.played, time.Since(began).Round(time.Second), s)
	if never := s.seen.Never(); s.played >= enough && len(never) > 0 {
		t.Errorf("in %d seeds it never happened: %s", s.played, strings.Join(never, "; "))
	}
	if aimed, timed := s.seen["aimed faults"], s.seen["timed faults"]; s.played >= enough && aimed < timed {
		t.Errorf("%d faults were aimed at a point and %d were not: at least half should be", aimed, timed)
	}
	if *digests != "" {
		if err := os.WriteFile(*digests, []byte(strings.Join(s.digests, "\n")+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// suite adds up what many seeds show.
type suite struct {
	t       *testing.T
	next    atomic.Uint64
	digests []string

	mu       sync.Mutex
	seen     schedtest.Counters
	verdicts map[verify.Verdict]int
	worst    time.Duration
	played   int
	failed   int
	ticks    int
	runs     int
	stale    int
	excused  int
}

// work plays seeds until there are none left.
func (s *suite) work(t *testing.T) {
	for {
		seed := s.next.Add(1) - 1
		if seed >= *first+uint64(*seeds) {
			return
		}
		r := schedtest.Play(t, planOf(seed))
		s.digests[seed-*first] = fmt.Sprint(seed, " ", r.Digest)
		if s.add(t, seed, r) >= *stopping {
			return
		}
	}
}

// add takes a result and returns how many failed so far.
func (s *suite) add(t *testing.T, seed uint64, r schedtest.Result) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	s.seen.Add(r.Seen)
	for v, n := range r.Verdicts {
		s.verdicts[v] += n
	}
	s.worst = max(s.worst, r.WorstLag)
	s.ticks, s.runs, s.stale, s.excused = s.ticks+r.Ticks, s.runs+r.Runs, s.stale+r.Stale, s.excused+r.Excused
	if len(r.Findings) == 0 {
		return s.failed
	}
	s.failed++
	t.Errorf("seed %d: %d findings, the first: %s\nreplay it: go test ./scheduler/schedtest -run 'TestSim$' -v -sim.seed %d", seed, len(r.Findings), r.Findings[0], seed)
	if s.failed == 1 {
		t.Logf("seed %d:\n%s", seed, r)
	}
	return s.failed
}

func (s *suite) String() string {
	return fmt.Sprintf("%d failed; %d ticks, %d runs, %d stale writes refused, %d faults excused behind lost writes, worst lag %s\n%s",
		s.failed, s.ticks, s.runs, s.stale, s.excused, s.worst, s.seen)
}
