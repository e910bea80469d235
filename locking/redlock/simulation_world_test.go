package redlock

import (
	"math/rand/v2"
	"strconv"

	"github.com/escapement/escapement/locking"
)

// rules are what a mutant breaks. The zero value is the protocol.
type rules struct {
	blindWrite    bool // a master raises the token whatever holds the lock
	noWriteBack   bool // the largest promise is the token, without a second round for it
	amnesiacVote  bool // a master that lost its state votes at once
	noQuarantine  bool // a master rejoins without waiting for earlier operations to end
	lowFloor      bool // a master rejoins without the other masters' largest token
	earlyFloor    bool // a master reads the others' tokens before it has waited
	plainAccept   bool // a master lowers its promise
	lateRaises    bool // a master raises the token after a later attempt of its owner
	renewAnyToken bool // a renewal compares the owner only
	setBlind      bool // a second renewal sets the lock whatever is there
	setLate       bool // a second renewal sets the lock though it was granted to another owner since
	setAtOnce     bool // a second renewal sets the lock without another round
	takeOverKeeps bool // a take-over gets the token of the previous holder
	freshSecond   bool // an owner that repeats its request starts a new round of promises
}

// kind is what sort of schedules are played.
type kind struct {
	n    int  // masters
	loss bool // they restart empty
	// timed: clocks are right. Else locks lapse at any moment, and only the order of
	// tokens is promised.
	timed bool
}

const (
	simSteps = 400
	simTTL   = 120 // the longest
	never    = 1 << 40
)

// world is one schedule.
type world struct {
	kind
	rng     *rand.Rand
	rules   rules
	masters []*simMaster
	clients []*simClient
	post    []letter
	now     int
	begun   int // operations of clients
	grants  []granted
	named   []named
	rejoins []rejoin
	runIDs  []string
	indexes []master
	bad     string // the fault; "": none
	count   counts
}

// counts are how often something happened: a schedule without shows nothing.
type counts struct{ grants, fast, renewed, gone, set, taken, again, kept, late, rejoined int }

func (c *counts) add(o counts) {
	c.grants, c.fast, c.renewed, c.gone, c.set = c.grants+o.grants, c.fast+o.fast, c.renewed+o.renewed, c.gone+o.gone, c.set+o.set
	c.taken, c.again, c.kept, c.late, c.rejoined = c.taken+o.taken, c.again+o.again, c.kept+o.kept, c.late+o.late, c.rejoined+o.rejoined
}

func newWorld(seed uint64, k kind, r rules) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 3)), rules: r, kind: k, runIDs: make([]string, k.n), indexes: make([]master, k.n)}
	for i := range k.n {
		w.indexes[i].index = i
		w.masters = append(w.masters, newSimMaster())
	}
	for i := range 4 {
		w.clients = append(w.clients, &simClient{id: i, skew: locking.Token(w.rng.IntN(400) - 200)})
	}
	return w
}

// play runs the schedule and returns its fault; "": none.
func (w *world) play() string {
	for range simSteps {
		w.now++
		m := w.masters[w.rng.IntN(len(w.masters))]
		switch roll := w.rng.IntN(100); {
		case roll < 4 && w.timed:
			w.now += w.rng.IntN(40) // nothing happens
		case roll < 4:
			m.locks[w.rng.IntN(2)].free() // lapses, early or late: no clock is trusted
		case roll < 6 && w.loss && w.mayFall(m):
			m.restartEmpty(w.begun, w.now, w.rules)
		case roll < 16:
			w.deliver()
		case roll < 20 && w.loss:
			w.rejoin()
		default:
			w.act(w.clients[w.rng.IntN(len(w.clients))])
		}
		if w.bad != "" {
			return w.bad
		}
	}
	return w.verdict()
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

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

// quarantined: what began before the loss is over. That is what the wait for more
// than the longest ttl is for.
func (w *world) quarantined(m *simMaster) bool {
	switch {
	case w.rules.noQuarantine:
		return true
	case w.timed:
		return w.now-m.lostNow > simTTL+simTTL/10
	}
	for _, c := range w.clients {
		if c.phase != idle && c.phase != holding && c.began <= m.lostAt {
			return false
		}
	}
	return true
}

// until is when something lapses that lasts for ttl from now.
func (w *world) until(ttl int) int {
	if w.timed {
		return w.now + ttl
	}
	return never
}

func (w *world) hint(c *simClient) locking.Token { return locking.Token(w.now) + c.skew }

// letter is a request that comes late: a copy, or a request without a waiting sender.
type letter struct {
	what    what
	to      int
	name    int
	owner   string
	token   locking.Token
	ask     simAsk
	ttl     int
	attempt int
	seen    int // of a second renewal
}

type what uint8

const (
	lateAsk what = iota
	lateRenew
	lateSet
	lateWithdraw
	lateRelease
)

// send puts a letter in the post, which holds a few; the oldest is lost then.
func (w *world) send(l letter) {
	const most = 24
	if len(w.post) == most {
		copy(w.post, w.post[1:])
		w.post = w.post[:most-1]
	}
	w.post = append(w.post, l)
}

// deliver brings any of the letters.
func (w *world) deliver() {
	if len(w.post) == 0 {
		return
	}
	at := w.rng.IntN(len(w.post))
	l, last := w.post[at], len(w.post)-1
	w.post[at] = w.post[last]
	w.post = w.post[:last]
	w.count.late++
	m := w.masters[l.to]
	switch l.what {
	case lateAsk:
		l.ask.now = w.now
		m.promise(l.ask, w.rules)
	case lateRenew:
		w.lacks(l, w.renewAt(l))
	case lateSet:
		w.setAt(l)
	case lateWithdraw, lateRelease:
		m.release(l.name, l.owner, l.attempt, l.what == lateRelease, w.now)
	}
}

// lacks notes that a master answered a renewal of a client's present grant with code.
func (w *world) lacks(l letter, code int) {
	for _, c := range w.clients {
		if c.owner == l.owner && c.renewed > 0 && w.grants[c.renewed-1].token == l.token && code < 0 {
			l.what, l.seen = lateSet, -code
			if c.lacking = append(c.lacking, l); w.rules.setAtOnce {
				w.set(l)
			}
		}
	}
}

// set delivers the call that sets a lock soon, late or never.
func (w *world) set(l letter) {
	switch w.rng.IntN(6) {
	case 0:
	case 1, 2:
		w.send(l)
	default:
		w.setAt(l)
	}
}

func (w *world) setAt(l letter) {
	q := simRenew{l.name, l.owner, l.token, l.attempt, l.seen, w.until(l.ttl)}
	if w.masters[l.to].renew(q, w.now, w.rules) == codeYes {
		w.count.set++
	}
}

// renewAt renews at one master. Where a second renewal has set the lock, it is ours.
func (w *world) renewAt(l letter) int {
	m := w.masters[l.to]
	set := m.at(l.name, w.now).set == simGiven{l.owner, l.token}
	code := m.renew(simRenew{name: l.name, owner: l.owner, token: l.token, number: l.attempt, until: w.until(l.ttl)}, w.now, w.rules)
	if set && code != codeYes {
		w.wrong(l.owner, " has token ", l.token, " set at a master that does not renew it")
	}
	return code
}

// rejoin is a rejoin under way: of a master whose loss was old enough when it answered.
type rejoin struct {
	master *simMaster
	life   int
	asked  bool // the tokens of a majority have been read
	floor  locking.Token
}

// rejoin begins one, or does the next step of any.
func (w *world) rejoin() {
	m := w.masters[w.rng.IntN(w.n)]
	if !m.votes() && (w.quarantined(m) || w.rules.earlyFloor) {
		w.rejoins = append(w.rejoins, rejoin{master: m, life: m.life})
	}
	if len(w.rejoins) == 0 {
		return
	}
	at := w.rng.IntN(len(w.rejoins))
	r := w.rejoins[at]
	w.rejoins = append(w.rejoins[:at], w.rejoins[at+1:]...)
	if r.asked {
		if !r.master.votes() && r.master.life == r.life && w.quarantined(r.master) {
			r.master.voting, r.master.largest = r.life, max(r.master.largest, r.floor)
			w.count.rejoined++
		}
		return
	}
	voting := 0
	for _, i := range w.rng.Perm(w.n) {
		if o := w.masters[i]; o.votes() && voting < majority(w.n) {
			voting++
			r.floor = max(r.floor, o.largest)
		}
	}
	if w.rules.lowFloor {
		r.floor = 0
	}
	if voting == majority(w.n) {
		r.asked = true
		w.rejoins = append(w.rejoins, r)
	}
}

func (w *world) wrong(parts ...any) {
	if w.bad != "" {
		return
	}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			w.bad += p
		case locking.Token:
			w.bad += strconv.FormatInt(p, 10)
		}
	}
}
