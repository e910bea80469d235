package schedtest

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

	"github.com/escapement/escapement/scheduler/internal/audit"
)

// The flags of all tests that play seeds: name one test with -run.
var (
	oneSeed   = flag.Uint64("seed", 0, "play this seed only and tell its story")
	seeds     = flag.Int("seeds", 0, "how many seeds; 0: each test has its own number")
	firstSeed = flag.Uint64("first", 1, "the first of them")
	wordy     = flag.Bool("wordy", false, "with -seed: tell every message")
	again     = flag.Int("again", 0, "with -seed: play it so often more, and tell where a history first differs")
	digests   = flag.String("digests", "", "write each seed's digest to this file")
)

// failuresMost is after how many failing seeds a suite stops.
const failuresMost = 5

// suite plays many seeds and adds up their counters.
type suite struct {
	name   string
	plan   func(seed uint64) Plan
	seeds  int      // without -seeds
	enough int      // how many seeds must have shown everything in shows
	shows  []string // counters, or they have shown nothing

	mu       sync.Mutex
	next     atomic.Uint64
	digests  []string
	seen     Counters
	verdicts map[audit.Verdict]int
	total    audit.Report
	played   int
	failed   int
}

// run plays the seeds. A failing seed prints its findings and how to replay it; the first one its
// story too.
func (s *suite) run(t *testing.T) {
	t.Helper()
	if *oneSeed != 0 {
		s.replay(t)
		return
	}
	if *seeds > 0 {
		s.seeds = *seeds
	}
	s.digests, s.seen, s.verdicts = make([]string, s.seeds), Counters{}, make(map[audit.Verdict]int)
	s.next.Store(*firstSeed)
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	t.Logf("%d seeds in %s, %d failed; %d ticks, %d runs, %d stale writes refused, %d faults excused behind lost writes, worst lag %s; %v\n%s",
		s.played, time.Since(began).Round(time.Second), s.failed, s.total.Ticks, s.total.Runs, s.total.Stale, s.total.Excused, s.total.WorstLag, s.verdicts, s.seen)
	if never := s.seen.never(s.shows); s.played >= s.enough && len(never) > 0 {
		t.Errorf("in %d seeds it never happened: %s", s.played, strings.Join(never, "; "))
	}
	if *digests != "" {
		if err := os.WriteFile(*digests, []byte(strings.Join(s.digests, "\n")+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func (s *suite) replay(t *testing.T) {
	t.Helper()
	p := s.plan(*oneSeed)
	p.wordy = *wordy
	r := Run(t, p)
	t.Logf("%s\n%s\ndigest %s", r, r.Seen, r.Digest)
	for range *again {
		p = s.plan(*oneSeed)
		p.wordy = *wordy
		wantSame(t, r, Play(t, p))
	}
}

func (s *suite) work(t *testing.T) {
	for {
		seed := s.next.Add(1) - 1
		if seed >= *firstSeed+uint64(s.seeds) {
			return
		}
		r := Play(t, s.plan(seed))
		s.digests[seed-*firstSeed] = fmt.Sprint(seed, " ", r.Digest)
		if s.add(t, seed, r) >= failuresMost {
			return
		}
	}
}

// add takes a result and returns how many failed so far.
func (s *suite) add(t *testing.T, seed uint64, r Result) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	s.seen.Add(r.Seen)
	for v, n := range r.Verdicts {
		s.verdicts[v] += n
	}
	s.total.WorstLag = max(s.total.WorstLag, r.WorstLag)
	s.total.Ticks, s.total.Runs = s.total.Ticks+r.Ticks, s.total.Runs+r.Runs
	s.total.Stale, s.total.Excused = s.total.Stale+r.Stale, s.total.Excused+r.Excused
	if len(r.Findings) == 0 {
		return s.failed
	}
	s.failed++
	t.Errorf("seed %d: %d findings, the first: %s\nreplay it: go test ./scheduler/schedtest -run '%s$' -v -seed %d", seed, len(r.Findings), r.Findings[0], s.name, seed)
	if s.failed == 1 {
		t.Logf("seed %d:\n%s", seed, r)
	}
	return s.failed
}

// wantSame ends the test when two plays of a plan differ, and prints the stories around the first
// different line.
func wantSame(t *testing.T, one, other Result) {
	t.Helper()
	if one.Digest == other.Digest {
		return
	}
	for _, s := range [][2][]string{{one.Story, other.Story}, {other.Story, one.Story}} {
		there := make(map[string]bool)
		for _, line := range s[1] {
			there[line] = true
		}
		for i, line := range s[0] {
			if there[line] {
				continue
			}
			for _, line := range s[0][max(0, i-12):min(len(s[0]), i+4)] {
				t.Logf("%.220s", line)
			}
			t.Log("")
			break
		}
	}
	t.Fatalf("digest %s, then %s", one.Digest, other.Digest)
}
