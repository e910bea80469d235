package schedtest

import "testing"

// TestSim plays random plans: sharded and other jobs, faults of messages, nodes and Redis, deploys.
func TestSim(t *testing.T) {
	s := &suite{name: "TestSim", plan: planOf, seeds: 24, enough: 400, shows: simShows}
	s.run(t)
	if aimed, timed := s.seen["aimed faults"], s.seen["timed faults"]; s.played >= s.enough && aimed < timed {
		t.Errorf("%d faults were aimed at a point and %d were not: at least half should be", aimed, timed)
	}
}

// simShows are the events that enough seeds of TestSim must show.
var simShows = []string{
	"failover between asking and claim", "failover between claim and start", "failover between start and settle",
	"stale write refused", "tick taken over", "lease expired while running",
	"unknown outcome found applied", "unknown outcome found not applied",
	"ran on version 0", "ran on version 1", "two versions ran ticks of one job",
	"Redis lost something: empty Redis", "Redis lost something: roll Redis back", "message came late", "run handed back",
	"script asked for again after it was flushed",
	"tick of shards", "shard taken over", "shards changed while open", "partial failure",
}

// healthy is a seed's plan without its faults and deploys.
func healthy(seed uint64) Plan {
	p := planOf(seed)
	p.Faults, p.Versions, p.Heal, p.For = nil, nil, second, 20*second
	return p
}

// The control: without faults nothing is late and nothing is missed.
func TestSimWithoutFaults(t *testing.T) {
	for seed := range uint64(6) {
		r := Run(t, healthy(seed))
		if r.Stale > 0 || r.Excused > 0 || r.Verdicts["satisfied"] < 15 {
			t.Errorf("seed %d: %v, %d stale writes, %d faults excused", seed, r.Verdicts, r.Stale, r.Excused)
		}
		for v, n := range r.Verdicts {
			if v != "satisfied" && v != "skipped" && v != "pending" {
				t.Errorf("seed %d: %d ticks are %s without a fault", seed, n, v)
			}
		}
	}
}

// The same seed gives the same history, message by message. make sim-same compares core counts and
// builds.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(2) {
		wantSame(t, Play(t, planOf(seed)), Play(t, planOf(seed)))
		wantSame(t, Play(t, policiesPlan(seed)), Play(t, policiesPlan(seed)))
	}
}
