package redlock

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/escapement/escapement/locking"
)

var (
	simSeed  = flag.Uint64("sim.seed", 1, "the first of the schedules that TestSimulation plays")
	simCount = flag.Int("sim", 4000, "how many schedules TestSimulation plays, for each number of masters")
)

// rules are what a mutant breaks. The zero value is the protocol.
type rules struct {
	blindWrite   bool // phase 2 writes whatever holds the lock
	noWriteBack  bool // the largest promise is the token, and no phase 2
	amnesiacVote bool // a master that lost its state votes at once
	noQuarantine bool // it is repaired without waiting for what was under way
	lowFloor     bool // it is repaired without what the others know
	plainAccept  bool // phase 2 accepts a token that is smaller than the promise
}

// simLock is one of a master's locks.
type simLock struct {
	life    int    // the run_id under which the counter was last set
	owner   string // "" for a free lock
	token   locking.Token
	counter locking.Token
}

// simMaster is one master: the scripts, in as few words as will do.
// TestScriptsFollowModel holds the two together.
type simMaster struct {
	life    int // its run_id
	voting  int // the life under which it votes
	largest locking.Token
	locks   [2]simLock
	lostAt  int // number of acquisitions begun when it lost its state
}

func (m *simMaster) votes() bool { return m.life == m.voting }

// raise makes c the counter of a lock.
func (m *simMaster) raise(l *simLock, c locking.Token) {
	l.counter, l.life, m.largest = c, m.life, max(m.largest, c)
}

func (m *simMaster) counter(l *simLock) locking.Token {
	if l.life != m.life || l.counter == 0 {
		return max(l.counter, m.largest)
	}
	return l.counter
}

func (m *simMaster) promise(name int, owner string, hint locking.Token) (p promise) {
	l := &m.locks[name]
	switch {
	case !m.votes():
		p.code = codeAmnesiac
		return p
	case l.owner != "" && l.owner != owner:
		p.code, p.held, p.largest = codeHeld, claim{owner: l.owner, token: l.token}, m.largest
		return p
	case l.owner == "":
		m.raise(l, max(m.counter(l)+1, hint))
		l.owner, l.token = owner, l.counter
	}
	p.code, p.token, p.largest = codePromised, l.token, m.largest
	return p
}

func (m *simMaster) confirm(name int, owner string, t locking.Token, r rules) int {
	l := &m.locks[name]
	if r.blindWrite && m.votes() {
		m.raise(l, max(m.counter(l), t))
		return codeYes
	}
	if !m.votes() || l.owner != owner || l.token > t && !r.plainAccept {
		return 0
	}
	m.raise(l, max(m.counter(l), t))
	l.token = t
	return codeYes
}

func (m *simMaster) release(name int, owner string) {
	if m.locks[name].owner == owner {
		m.locks[name].owner = ""
	}
}

// restartEmpty loses everything.
func (m *simMaster) restartEmpty(now int, r rules) {
	*m = simMaster{life: m.life + 1, voting: m.voting, lostAt: now}
	if r.amnesiacVote {
		m.voting = m.life
	}
}

// simClient asks for the lock, again and again, each time as another owner. Its
// messages arrive one at a time, in any order, or never.
type simClient struct {
	id     int
	skew   locking.Token
	owner  string
	began  int // number of this acquisition in the order of beginnings
	name   int // of the lock
	phase  int // 0 idle, 1, 2, 3 holding
	toSend []int
	late   []int // masters that a copy of phase 1 may still reach
	ballot ballot
	votes  votes
	token  locking.Token
	ripe   []int // masters that had said before it began that they lost their state long enough ago
}

// granted is one acquisition that succeeded.
type granted struct {
	name       int
	owner      string
	token      locking.Token
	began, won int // on the clock of steps
}

// world is one schedule.
type world struct {
	rng     *rand.Rand
	rules   rules
	loss    bool // masters restart empty
	masters []*simMaster
	clients []*simClient
	step    int
	begun   int
	open    map[int]bool // acquisitions that are under way
	grants  []granted
	started map[string]int
	fast    int
}

func newWorld(seed uint64, n int, loss bool, r rules) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 3)), rules: r, loss: loss, open: map[int]bool{}, started: map[string]int{}}
	for range n {
		w.masters = append(w.masters, &simMaster{})
	}
	for i := range 4 {
		w.clients = append(w.clients, &simClient{id: i, skew: locking.Token(w.rng.IntN(400) - 200)})
	}
	return w
}

// play runs the schedule and returns what is wrong with its tokens.
func (w *world) play() string {
	for w.step = 1; w.step < 400; w.step++ {
		m := w.masters[w.rng.IntN(len(w.masters))]
		switch roll := w.rng.IntN(100); {
		case roll < 4:
			m.locks[w.rng.IntN(2)].owner = "" // expires, early or late: no clock is trusted
		case roll < 6 && w.loss && w.mayFall(m):
			m.restartEmpty(w.begun, w.rules)
		default:
			w.act(w.clients[w.rng.IntN(len(w.clients))])
		}
	}
	return w.verdict()
}

// mayFall: a majority keeps its state at any time.
func (w *world) mayFall(m *simMaster) bool {
	up := 0
	for _, o := range w.masters {
		if o != m && o.votes() {
			up++
		}
	}
	return up >= majority(len(w.masters)) || w.rules.amnesiacVote
}

func (w *world) act(c *simClient) {
	switch c.phase {
	case 0:
		w.begin(c)
	case 1:
		w.ask(c)
	case 2:
		w.confirm(c)
	case 3:
		w.finish(c)
	}
}

func (w *world) begin(c *simClient) {
	w.begun++
	*c = simClient{id: c.id, skew: c.skew, owner: fmt.Sprintf("%d.%d", c.id, w.begun), began: w.begun, name: w.rng.IntN(2), phase: 1}
	c.ballot = ballot{votes: votes{n: len(w.masters)}}
	c.toSend = w.rng.Perm(len(w.masters))
	w.open[c.began], w.started[c.owner] = true, w.step
	for i, m := range w.masters {
		if !m.votes() && w.quarantined(m) {
			c.ripe = append(c.ripe, i)
		}
	}
}

// quarantined: what began before the loss is over. That is what the wait for more
// than the longest ttl stands for.
func (w *world) quarantined(m *simMaster) bool {
	if w.rules.noQuarantine {
		return true
	}
	for began := range w.open {
		if began <= m.lostAt {
			return false
		}
	}
	return true
}

func (w *world) hint(c *simClient) locking.Token { return locking.Token(w.step) + c.skew }

// ask delivers one request of phase 1, or loses it or its reply.
func (w *world) ask(c *simClient) {
	i := c.toSend[0]
	c.toSend = c.toSend[1:]
	if w.rng.IntN(4) == 0 {
		c.late = append(c.late, i)
	}
	if w.rng.IntN(12) > 0 {
		p := w.masters[i].promise(c.name, c.owner, w.hint(c))
		a := answer[promise]{master: i, value: p}
		if w.rng.IntN(12) == 0 {
			a.err = errBusy
		}
		c.ballot.take(a)
	}
	// Some wait for all answers, some go on at the quorum.
	if len(c.toSend) > 0 && (!c.ballot.won() || w.rng.IntN(2) == 0) {
		return
	}
	if !c.ballot.won() {
		w.giveUp(c)
		return
	}
	var settled bool
	c.token, settled = chooseToken(len(w.masters), c.ballot.tokens())
	if settled || w.rules.noWriteBack {
		w.fast++
		w.grant(c)
		return
	}
	c.phase, c.votes, c.toSend = 2, votes{n: len(w.masters)}, nil
	for _, p := range c.ballot.promises {
		c.toSend = append(c.toSend, p.master)
	}
	w.rng.Shuffle(len(c.toSend), func(i, j int) { c.toSend[i], c.toSend[j] = c.toSend[j], c.toSend[i] })
}

func (w *world) confirm(c *simClient) {
	if len(c.late) > 0 && w.rng.IntN(2) == 0 {
		w.masters[c.late[0]].promise(c.name, c.owner, w.hint(c))
		c.late = c.late[1:]
		return
	}
	i := c.toSend[0]
	c.toSend = c.toSend[1:]
	if w.rng.IntN(12) > 0 {
		m := w.masters[i]
		code := m.confirm(c.name, c.owner, c.token, w.rules)
		if w.rng.IntN(12) > 0 {
			c.votes.count(code, nil)
		}
		if w.loss && w.rng.IntN(5) == 0 && w.mayFall(m) {
			m.restartEmpty(w.begun, w.rules) // the worst moment
		}
	}
	switch {
	case c.votes.won():
		w.grant(c)
	case len(c.toSend) == 0:
		w.giveUp(c)
	}
}

func (w *world) grant(c *simClient) {
	w.grants = append(w.grants, granted{c.name, c.owner, c.token, w.started[c.owner], w.step})
	floor, _ := repairFloor(c.ballot.promises)
	if w.rules.lowFloor {
		floor = 0
	}
	for _, i := range c.ripe {
		m := w.masters[i]
		if !m.votes() && w.quarantined(m) && w.rng.IntN(2) == 0 {
			m.voting, m.largest = m.life, max(m.largest, floor)
		}
	}
	delete(w.open, c.began)
	c.phase = 3
}

func (w *world) giveUp(c *simClient) {
	delete(w.open, c.began)
	w.finish(c)
}

// finish releases, and some releases are forgotten.
func (w *world) finish(c *simClient) {
	for _, m := range w.masters {
		if w.rng.IntN(5) > 0 {
			m.release(c.name, c.owner)
		}
	}
	c.phase = 0
}

// verdict holds the grants against the promise: no token twice, and a larger one
// for whoever began when another was through.
func (w *world) verdict() string {
	type named struct {
		name  int
		token locking.Token
	}
	seen := make(map[named]string)
	for _, g := range w.grants {
		if other, again := seen[named{g.name, g.token}]; again {
			return fmt.Sprintf("%s and %s both have token %d", other, g.owner, g.token)
		}
		seen[named{g.name, g.token}] = g.owner
	}
	for _, a := range w.grants {
		for _, b := range w.grants {
			if a.name == b.name && a.won < b.began && b.token <= a.token {
				return fmt.Sprintf("%s began after %s had token %d, and has token %d", b.owner, a.owner, a.token, b.token)
			}
		}
	}
	return ""
}

// tally plays count schedules and returns how many are bad, and the first.
func tally(t *testing.T, n int, loss bool, r rules, count int, stop bool) (bad int, first string, grants, fast int) {
	t.Helper()
	for i := range count {
		seed := *simSeed + uint64(i)
		w := newWorld(seed, n, loss, r)
		if what := w.play(); what != "" {
			if bad++; first == "" {
				first = fmt.Sprintf("%s (replay: -run TestSimulation -sim.seed=%d -sim=1)", what, seed)
			}
		}
		grants, fast = grants+len(w.grants), fast+w.fast
		if stop && bad > 0 {
			break
		}
	}
	return bad, first, grants, fast
}

// TestSimulation plays the decisions of the driver against a model of masters
// that is as hostile as can be: locks expire at any moment, messages are lost,
// releases forgotten, clients' clocks wrong, masters emptied.
func TestSimulation(t *testing.T) {
	t.Parallel()
	t.Logf("seeds from %d; set -sim.seed", *simSeed)
	for _, n := range []int{3, 5} {
		for _, loss := range []bool{false, true} {
			bad, first, grants, fast := tally(t, n, loss, rules{}, *simCount, false)
			t.Logf("N=%d, masters emptied %t: %d schedules, %d grants, %d%% in one round trip, %d bad",
				n, loss, *simCount, grants, 100*fast/max(grants, 1), bad)
			if bad > 0 {
				t.Errorf("N=%d, masters emptied %t: %d of %d schedules are bad: %s", n, loss, bad, *simCount, first)
			}
			if *simCount >= 100 && (grants < *simCount || fast == 0 || fast == grants) {
				t.Errorf("N=%d: %d grants, %d fast: the schedules show nothing", n, grants, fast)
			}
		}
	}
}

// TestSimulationCatches shows that the simulation sees each rule broken.
func TestSimulationCatches(t *testing.T) {
	t.Parallel()
	mutants := map[string]struct {
		rules rules
		loss  bool
	}{
		"unconditional write-back":            {rules{blindWrite: true}, false},
		"largest promise without write-back":  {rules{noWriteBack: true}, false},
		"write-back below the promise":        {rules{plainAccept: true}, false},
		"amnesiac masters vote":               {rules{amnesiacVote: true}, true},
		"repaired before the old are over":    {rules{noQuarantine: true}, true},
		"repaired without the others' tokens": {rules{lowFloor: true}, true},
	}
	for _, name := range slices.Sorted(maps.Keys(mutants)) {
		m := mutants[name]
		bad, first, _, _ := tally(t, 3, m.loss, m.rules, 40000, true)
		t.Logf("%s: %s", name, first)
		if bad == 0 {
			t.Errorf("%s: nothing found in 40000 schedules", name)
		}
	}
}
