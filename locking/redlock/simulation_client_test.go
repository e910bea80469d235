package redlock

import (
	"strconv"
	"time"

	"github.com/escapement/escapement/locking"
)

// phase is what a client does.
type phase uint8

const (
	idle phase = iota
	asking
	confirming
	holding
	renewing
)

// simClient asks for a lock, again and again, mostly each time as another owner.
// Its messages arrive one at a time, in any order, or never.
type simClient struct {
	id      int
	skew    locking.Token
	owner   string
	attempt int
	began   int // number of this operation in the order of beginnings
	name    int // of the lock
	ttl     int
	from    locking.Token
	phase   phase
	toSend  []int
	ballot  ballot
	arrived []int // when the ballot's promises came
	votes   votes
	token   locking.Token // of phase 2
	asked   int           // when this operation began
	ripe    []int         // masters that had said before it began that they lost their state long enough ago

	held, past int // number of the grant in world.grants, and of the one that this owner had before; 0: none
	known      int // until when the driver remembers the grant
	renewed    int // the grant that is being renewed
	second     bool
	missed     []int
}

func (w *world) act(c *simClient) {
	switch c.phase {
	case idle:
		w.start(c)
	case asking:
		w.ask(c)
	case confirming:
		w.confirm(c)
	case holding:
		w.hold(c)
	case renewing:
		w.renew(c)
	}
}

// start asks as another owner, or again as the same.
func (w *world) start(c *simClient) {
	if c.owner != "" && w.chance(3) {
		w.askAgain(c)
		return
	}
	if c.owner != "" && w.chance(2) {
		w.giveBack(c, true)
	}
	name, ttl := w.rng.IntN(2), simTTL>>w.rng.IntN(2)
	*c = simClient{
		id: c.id, skew: c.skew, owner: strconv.Itoa(c.id) + "." + strconv.Itoa(w.begun+1), name: name, ttl: ttl,
		toSend: c.toSend, ballot: c.ballot, arrived: c.arrived, ripe: c.ripe, missed: c.missed,
	}
	if w.chance(6) {
		c.from = w.nameOne(name)
	}
	w.begin(c)
}

// begin is phase 1 from its start.
func (w *world) begin(c *simClient) {
	w.operation(c, asking)
	c.attempt = w.begun
	b := &c.ballot
	for i := range b.runIDs {
		b.runIDs[i] = ""
	}
	*b = ballot{votes: votes{n: w.n}, promises: b.promises[:0], claims: b.claims[:0], errs: b.errs[:0], runIDs: b.runIDs}
	c.arrived = c.arrived[:0]
}

// operation begins something that asks all masters.
func (w *world) operation(c *simClient, p phase) {
	w.begun++
	c.phase, c.began, c.asked = p, w.begun, w.now
	c.votes = votes{n: w.n}
	c.toSend, c.ripe = c.toSend[:0], c.ripe[:0]
	for i, m := range w.masters {
		c.toSend = append(c.toSend, i)
		if !m.votes() && w.quarantined(m) {
			c.ripe = append(c.ripe, i)
		}
	}
	w.shuffle(c.toSend)
}

func (w *world) shuffle(s []int) { w.rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] }) }

func (c *simClient) next() int {
	i := c.toSend[0]
	c.toSend = append(c.toSend[:0], c.toSend[1:]...)
	return i
}

// ask delivers one request of phase 1, or loses it or its reply.
func (w *world) ask(c *simClient) {
	i := c.next()
	q := simAsk{
		name: c.name, owner: c.owner, attempt: c.attempt, ttl: c.ttl, hint: w.hint(c), from: c.from,
		now: w.now, keeps: w.rules.takeOverKeeps,
	}
	if !w.timed {
		q.ttl = never
	}
	if w.chance(8) {
		w.send(letter{what: lateAsk, to: i, ask: q})
	}
	if !w.chance(12) {
		a := answer[promise]{master: i, value: w.masters[i].promise(q)}
		if w.chance(12) {
			a.err = errBusy
		}
		before := len(c.ballot.promises)
		c.ballot.take(a)
		if len(c.ballot.promises) > before {
			c.arrived = append(c.arrived, w.now)
		}
	}
	// Some wait for all answers, some go on at the quorum.
	if len(c.toSend) > 0 && (!c.ballot.won() || w.chance(2)) {
		return
	}
	if !c.ballot.won() {
		w.giveUp(c, c.ballot.no > 0)
		return
	}
	var settled bool
	c.token, settled = chooseToken(w.n, c.ballot.tokens())
	if settled || w.rules.noWriteBack {
		w.count.fast++
		w.grant(c, w.settledAt(c))
		return
	}
	c.phase, c.votes, c.toSend = confirming, votes{n: w.n}, c.toSend[:0]
	for _, p := range c.ballot.promises {
		c.toSend = append(c.toSend, p.master)
	}
	w.shuffle(c.toSend)
}

// settledAt is when a majority had promised the token.
func (w *world) settledAt(c *simClient) int {
	same := 0
	for i, p := range c.ballot.promises {
		if p.token == c.token {
			if same++; same == majority(w.n) {
				return c.arrived[i]
			}
		}
	}
	return w.now
}

func (w *world) confirm(c *simClient) {
	i := c.next()
	if w.chance(8) {
		w.send(letter{what: lateConfirm, to: i, name: c.name, owner: c.owner, token: c.token, attempt: c.attempt})
	}
	if !w.chance(12) {
		m := w.masters[i]
		code := m.confirm(c.name, c.owner, c.token, c.attempt, w.now, w.rules)
		if !w.chance(12) {
			c.votes.count(code, nil)
		}
		if w.loss && w.chance(5) && w.mayFall(m) {
			m.restartEmpty(w.begun, w.now, w.rules) // the worst moment
		}
	}
	switch {
	case c.votes.won():
		w.grant(c, w.now)
	case len(c.toSend) == 0:
		w.giveUp(c, c.votes.no > 0)
	}
}

// elapsed is the time since the operation began; a step is 10 ms. Where no clock is
// right it is nothing.
func (w *world) elapsed(c *simClient) (ttl, elapsed time.Duration) {
	const step = 10 * time.Millisecond
	if w.timed {
		elapsed = time.Duration(w.now-c.asked) * step
	}
	return time.Duration(c.ttl) * step, elapsed
}

// grant is the end of an acquisition that a majority has accepted, at that time.
func (w *world) grant(c *simClient, accepted int) {
	if validity(w.elapsed(c)) <= 0 {
		w.giveUp(c, true)
		return
	}
	w.granted(c, accepted)
	floor, _ := repairFloor(c.ballot.promises)
	if w.rules.lowFloor {
		floor = 0
	}
	for _, i := range c.ripe {
		m := w.masters[i]
		if !m.votes() && w.quarantined(m) && w.chance(2) {
			m.voting, m.largest = m.life, max(m.largest, floor)
		}
	}
	c.phase, c.known = holding, w.now+c.ttl
}

// giveUp ends an acquisition that failed. When a master said why, it is taken back.
func (w *world) giveUp(c *simClient, takeBack bool) {
	c.phase, c.known = idle, 0
	if takeBack {
		w.giveBack(c, false)
	}
}

// giveBack releases, or withdraws what was asked for so far. Some masters are told
// late, some not at all.
func (w *world) giveBack(c *simClient, release bool) {
	upto, what := c.attempt, lateWithdraw
	if release {
		upto, what = allAttempts, lateRelease
		w.ends(c)
	}
	for i, m := range w.masters {
		switch roll := w.rng.IntN(10); {
		case roll < 7:
			m.release(c.name, c.owner, upto, release, w.now)
		case roll < 9:
			w.send(letter{what: what, to: i, name: c.name, owner: c.owner, attempt: upto})
		}
	}
}
