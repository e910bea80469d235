package model

import (
	"math"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Scenario is one small world with the faults that may happen there.
type Scenario struct {
	Name      string
	Schedules [3]Ticks // by definition
	Shards    [3]int8  // by definition, 1 or 2; 0 is 1
	Newest    Digest   // the last definition that is deployed, 1 or 2; 0 is 1
	Ahead     int8     // by how much a tick may be claimed before it is due
	Attempts  int8     // most attempts of one shard, the next after a lease was reaped: 1 or 2; 0 is 1

	Faults  int8 // how many of the three kinds below, together
	Network bool // a request is delayed or dropped, a reply is lost
	Crashes bool
	Pauses  bool

	Steps     []int8 // by how much Redis' clock may step
	MostSteps int8   // how often; nodes look at the clock between two steps

	Attentive bool // nodes see a step at once; only commands under way have the old clock

	HandBacks int8 // how often a granted run is handed back for no reason
	Deploys   int8 // how often a node is restarted with another definition; node 1 begins with the second
	Failovers int8 // how often Redis falls back to a copy without the last write

	Excused   []Promise // not promised here, and not checked
	Off       Guard     // the rule that is switched off; NoGuard for none
	neverReap bool      // so that the search for stuck states has one to find
	Most      int       // states, a stop for mistakes in the model; 0: two million
}

// Ticks is a set of the instants 1 to 3.
type Ticks uint8

// At is the set of these instants.
func At(instants ...int8) Ticks {
	var t Ticks
	for _, at := range instants {
		t |= 1 << at
	}
	return t
}

// Has reports whether an instant is a tick.
func (t Ticks) Has(at int8) bool { return at > 0 && at < end && t>>at&1 == 1 }

// Next is the first tick after an instant, or end.
func (t Ticks) Next(after int8) int8 {
	for at := after + 1; at < end; at++ {
		if t.Has(at) {
			return at
		}
	}
	return end
}

// count is the number of ticks from one instant to another one, and the last of them.
func (t Ticks) count(from, to int8) (n int64, last int8) {
	for at := from; at <= to; at++ {
		if t.Has(at) {
			n, last = n+1, at
		}
	}
	return n, last
}

// Promise is one of the promises of docs/guarantees.md.
type Promise string

// The promises checked in every state.
const (
	P1 Promise = "P1" // at most one grant for each tick, shard and attempt; attempt n+1 only after attempt n
	P2 Promise = "P2" // each tick has exactly one recorded answer, a true one
	P3 Promise = "P3" // tokens grow in the order of the grants
	P4 Promise = "P4" // no tick is granted that another node still executes within its deadline
	P6 Promise = "P6" // a granted run is run, unless its node died: no node has given it up
	P7 Promise = "P7" // no tick mixes shard counts
)

// Violation is a broken promise and the shortest way there, one step a line.
type Violation struct {
	Promise Promise
	What    string
	Trace   []string
}

// Result is what Explore found.
type Result struct {
	States     int
	Violations []Violation // at most one: the exploration ends with the first
	Stuck      int         // states from which the goal cannot be reached any more
	StuckTrace []string    // the shortest way to one of them
	Capped     bool        // there were more than Scenario.Most states
	Took       time.Duration
}

// world is a scenario being explored: the rules, and a place for what goes wrong in a step.
type world struct {
	Scenario
	broken *Violation
	steps  func(Event, State) // receives each step from the state being expanded

	ledger *Ledger // the scripts, on a record that load puts there
	job    *job
	pool   [3]run
	passes [1]ledger.SkippedRange
}

// newWorld fills in what a scenario leaves out.
func newWorld(sc Scenario) *world {
	sc.Newest, sc.Attempts = max(sc.Newest, 1), max(sc.Attempts, 1)
	for d := range sc.Shards {
		sc.Shards[d] = max(sc.Shards[d], 1)
	}
	if sc.Most == 0 {
		sc.Most = 2_000_000
	}
	w := &world{Scenario: sc, job: &job{Entry: ledger.Entry{Counts: map[jobs.Outcome]int64{}}}}
	w.ledger = &Ledger{
		skew: skew * unit, ahead: int64(sc.Ahead) * unit, keep: math.MaxInt, keepFor: math.MaxInt32, off: sc.Off, next: nextID,
		jobs: map[string]*job{theJob: w.job}, defs: map[string]bool{},
	}
	return w
}

func (w *world) on(g Guard) bool { return w.Off != g }

// emit hands a step on, with what it broke.
func (w *world) emit(e Event, next State) {
	w.steps(e, next)
	w.broken = nil
}

// initial is a healthy cluster before the first tick.
func (w *world) initial() State {
	first := w.Schedules[0].Next(0)
	s := State{Left: Budget{
		Faults: w.Faults, Steps: w.MostSteps, HandBacks: w.HandBacks, Deploys: w.Deploys, Failovers: w.Failovers,
	}}
	s.Records[0] = Record{Cursor: first}
	for i := range s.Nodes {
		s.Nodes[i] = Node{View: first, Steady: ttl}
	}
	if w.Deploys > 0 {
		s.Nodes[1].Digest = 1
	}
	if w.Failovers > 0 {
		s.Records[1] = s.Records[0]
	}
	return s
}

// reached is the goal: the ledger has an answer for every tick and nothing open.
func reached(s *State) bool { return s.Records[0].Cursor == end && s.Records[0].Tick == 0 }
