package schedtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

var (
	policySeed  = flag.Uint64("policies.seed", 0, "play this seed only and tell its story")
	policySeeds = flag.Int("policies.seeds", defaultPolicies, "how many seeds TestPolicies plays")
	policyFirst = flag.Uint64("policies.first", 1, "the first of them")
	policyWordy = flag.Bool("policies.wordy", false, "with policies.seed: tell every message")
	policyAgain = flag.Int("policies.again", 0, "with policies.seed: play it so often more and tell where a history first differs")
	policyStop  = flag.Int("policies.failures", 5, "stop after so many failing seeds")
)

// TestPolicies plays random plans with all policies, faults and operators, and holds each to rules that know
// nothing of what the policies should have made of it. TestSim's verifier does know, for the default ones.
func TestPolicies(t *testing.T) {
	if *policySeed != 0 {
		p, told := policiesPlan(*policySeed)
		p.wordy = *policyWordy
		r := Play(t, p)
		for _, what := range told.verdict(r) {
			t.Error(what)
		}
		t.Logf("%s\n%s\n%s\ndigest %s", told, r, r.Seen, r.Digest)
		for range *policyAgain {
			p, _ = policiesPlan(*policySeed)
			p.wordy = *policyWordy
			WantSame(t, r, Play(t, p))
		}
		return
	}
	s := &policySuite{seen: make(map[string]int)}
	s.next.Store(*policyFirst)
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	t.Logf("%d seeds in %s, %d failed\n%s", s.played, time.Since(began).Round(time.Second), s.failed, s)
	if never := s.never(); s.played >= policiesEnough && len(never) > 0 {
		t.Errorf("in %d seeds it never happened: %s", s.played, strings.Join(never, "; "))
	}
}

// verdict is all that is wrong with a play.
func (t *tale) verdict(r Result) []string {
	all := slices.Clone(t.broken)
	for _, f := range r.Findings {
		all = append(all, f.String())
	}
	return all
}

// policiesEnough is how many seeds must have shown everything in policiesShow.
const policiesEnough = 300

// policiesShow is what many seeds must show, or they have shown nothing.
var policiesShow = []string{
	"missed (late)", "missed (catch_up_max)", "missed (start_within)", "skipped (overlap)", "skipped (upstream)", "paused (paused)",
	"superseded (definition replaced)", "superseded (rewound)", "cancelled (replaced)", "cancelled (draining)", "cancelled (cancelled by ops: enough)",
	"timed_out", "failed", "lost", "abandoned (lease lapsed)", "succeeded", "tries > 1", "attempt > 1", "attempt > 2", "trigger after", "trigger rerun",
	"trigger catch_up", "trigger manual", "rerun: done", "unique: the same run", "cancel: told", "cancel: cancelled", "rewind: done",
	"resume: done", "handed back", "mode s", "mode q", "mode r", "mode a",
	"tick of shards", "shard taken over", "partial failure", "shard run again", "tick of shards run again",
	"tick of shards cancelled by hand",
}

// policySuite adds up what many seeds show.
type policySuite struct {
	next atomic.Uint64

	mu             sync.Mutex
	seen           map[string]int
	played, failed int
}

func (s *policySuite) work(t *testing.T) {
	for {
		seed := s.next.Add(1) - 1
		if seed >= *policyFirst+uint64(*policySeeds) {
			return
		}
		p, told := policiesPlan(seed)
		r := Play(t, p)
		if s.add(t, seed, told, r) >= *policyStop {
			return
		}
	}
}

// add takes what a seed showed and returns how many failed so far.
func (s *policySuite) add(t *testing.T, seed uint64, told *tale, r Result) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	told.count(s.seen)
	for _, what := range []string{"shard taken over", "shards changed while open"} {
		s.seen[what] += r.Seen[what]
	}
	wrong := told.verdict(r)
	if len(wrong) == 0 {
		return s.failed
	}
	s.failed++
	t.Errorf("seed %d: %d findings, the first: %s\nreplay it: go test ./scheduler/schedtest -run 'TestPolicies$' -v -policies.seed %d", seed, len(wrong), wrong[0], seed)
	if s.failed == 1 {
		t.Logf("seed %d:\n%s\n%s\n%s", seed, strings.Join(wrong, "\n"), told, r)
	}
	return s.failed
}

func (s *policySuite) never() []string {
	return slices.DeleteFunc(slices.Clone(policiesShow), func(what string) bool { return s.seen[what] > 0 })
}

func (s *policySuite) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.seen)) {
		fmt.Fprintf(&b, "%8d  %s\n", s.seen[what], what)
	}
	return b.String()
}

// count adds up what a play showed.
func (t *tale) count(seen map[string]int) {
	for what, n := range t.did {
		seen[what] += n
	}
	for _, name := range t.names {
		for _, r := range t.rows[name] {
			what := r.Outcome.String()
			if r.Whole {
				seen["tick of shards "+what]++
				continue
			}
			if r.Reason != "" {
				what += " (" + r.Reason + ")"
			}
			seen[what]++
			if r.Tries > 1 {
				seen["tries > 1"]++
			}
		}
	}
	for _, g := range t.grants {
		seen["mode "+g.mode]++
		seen["trigger "+g.trigger]++
		for n := 1; n < min(g.attempt, 4); n++ {
			seen[fmt.Sprint("attempt > ", n)]++
		}
	}
	for _, e := range t.ends {
		if e.how == "returned" {
			seen["handed back"]++
		}
	}
	seen["runs"] += len(t.calls)
	t.countShards(seen)
}

// String tells a plan's jobs and what the ledger has of them.
func (t *tale) String() string {
	var b strings.Builder
	for v := range 1 + len(t.plan.Versions) {
		for _, j := range t.plan.jobs(v) {
			fmt.Fprintf(&b, "version %d %s\n", v, defined(j))
		}
	}
	for _, name := range t.names {
		fmt.Fprintf(&b, "%+v\n", t.entries[name].Entry)
		for _, r := range t.rows[name] {
			fmt.Fprintf(&b, "    %+v\n", r)
		}
	}
	for _, l := range t.open {
		fmt.Fprintf(&b, "    open %+v\n", l)
	}
	fmt.Fprintf(&b, "events %+v\npauses %+v\nasked %+v\n", t.events, t.pauses, t.asked)
	return b.String()
}

func defined(j jobs.Job) string {
	return fmt.Sprintf("%s %q after %q shards %d overlap %s catch_up %s %d start_within %s on_crash %s %d timeout %s retry %+v",
		j.Name, j.Schedule, j.After, j.Shards, j.Overlap, j.CatchUp, j.CatchUpMax, j.StartWithin, j.OnCrash, j.RerunMax, j.Timeout, j.Retry)
}

// A run of a job that follows another was asked for when Redis went away. When Redis came back it was asked for
// once more as it had been, though it had become too late; it was granted, handed back, and ran.
func TestFollowerIsNotAskedForTooLate(t *testing.T) {
	const file = scenarios + "/start_within/follower_claim_across_an_outage.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseScenario(file, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(s.want, s.playOn(t).got, s.wantAt, file); d != "" {
		t.Error(d)
	}
}

// A seed gives the same history each time.
func TestPoliciesAgain(t *testing.T) {
	for seed := range uint64(4) {
		p, told := policiesPlan(seed)
		first := Play(t, p)
		again, retold := policiesPlan(seed)
		WantSame(t, first, Play(t, again))
		if !slices.Equal(told.broken, retold.broken) {
			t.Errorf("seed %d: %q was broken, then %q", seed, told.broken, retold.broken)
		}
	}
}
