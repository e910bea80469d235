package redlock

import (
	"math/rand/v2"
	"strconv"

	"github.com/escapement/escapement/locking"
)

// rules are what a mutant breaks. The zero value is the protocol.
type rules struct {
	blindWrite    bool // phase 2 writes whatever holds the lock
	noWriteBack   bool // the largest promise is the token, and no phase 2
	amnesiacVote  bool // a master that lost its state votes at once
	noQuarantine  bool // it is repaired without waiting for what was under way
	lowFloor      bool // it is repaired without what the others know
	plainAccept   bool // phase 2 accepts a token that is smaller than the promise
	confirmLate   bool // phase 2 accepts a token though its owner has asked again
	renewAnyToken bool // a renewal compares the owner only
	topUpBlind    bool // a top-up writes whatever is there
	topUpOver     bool // a top-up writes over what its owner was granted since
	topUpKeeps    bool // a top-up leaves the token that it finds
	takeOverKeeps bool // who takes a lock over gets the token of who had it
	freshSecond   bool // an owner that asks again asks in phase 1
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
	bad     string // what is wrong
	count   counts
}

// counts are how often something happened: a schedule without shows nothing.
type counts struct{ grants, fast, renewed, gone, topped, taken, again, kept, late int }

func (c *counts) add(o counts) {
	c.grants, c.fast, c.renewed, c.gone, c.topped = c.grants+o.grants, c.fast+o.fast, c.renewed+o.renewed, c.gone+o.gone, c.topped+o.topped
	c.taken, c.again, c.kept, c.late = c.taken+o.taken, c.again+o.again, c.kept+o.kept, c.late+o.late
}

func newWorld(seed uint64, k kind, r rules) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 3)), rules: r, kind: k}
	for range k.n {
		w.masters = append(w.masters, newSimMaster())
	}
	for i := range 4 {
		w.clients = append(w.clients, &simClient{id: i, skew: locking.Token(w.rng.IntN(400) - 200)})
	}
	return w
}

// play runs the schedule and returns what is wrong with it.
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

// letter is a request that comes late: a copy, or one that nobody waits for.
type letter struct {
	what    what
	to      int
	name    int
	owner   string
	token   locking.Token
	ask     simAsk
	ttl     int
	attempt int
	mayMend bool // a renewal that was decided without it: a top-up follows if need be
}

type what uint8

const (
	lateAsk what = iota
	lateConfirm
	lateRenew
	lateTopUp
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
		m.promise(l.ask)
	case lateConfirm:
		m.confirm(l.name, l.owner, l.token, l.attempt, w.now, w.rules)
	case lateRenew:
		if code := w.renewAt(m, l.name, l.owner, l.token, l.ttl); l.mayMend && (code == codeFree || code == codeOtherToken) {
			l.what, l.mayMend = lateTopUp, false
			w.topUp(l)
		}
	case lateTopUp:
		w.topUpAt(l)
	case lateWithdraw, lateRelease:
		m.release(l.name, l.owner, l.attempt, l.what == lateRelease, w.now)
	}
}

// topUp delivers a top-up soon, late or never.
func (w *world) topUp(l letter) {
	switch w.rng.IntN(6) {
	case 0:
	case 1, 2:
		w.send(l)
	default:
		w.topUpAt(l)
	}
}

func (w *world) topUpAt(l letter) {
	if w.masters[l.to].topUp(l.name, l.owner, l.token, l.attempt, w.until(l.ttl), w.now, w.rules) == codeYes {
		w.count.topped++
	}
}

// renewAt renews at one master. Where a top-up has put the lock, it is ours.
func (w *world) renewAt(m *simMaster, name int, owner string, t locking.Token, ttl int) int {
	topped := m.at(name, w.now).topped == simGiven{owner, t}
	code := m.renew(name, owner, t, w.until(ttl), w.now, w.rules)
	if topped && code != codeYes {
		w.wrong(owner, " was topped up with token ", t, " at a master that does not renew it")
	}
	return code
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
