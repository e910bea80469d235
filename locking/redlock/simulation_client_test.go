package redlock

import (
	"errors"
	"strconv"
	"time"

	"github.com/escapement/escapement/locking"
)

// phase is a client's state.
type phase uint8

const (
	idle phase = iota
	asking
	holding
	renewing
)

var errLost = errors.New("the reply was lost")

// simClient requests a lock, again and again, mostly each time as another owner. Its messages
// arrive one at a time, in any order, or never.
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
	token   locking.Token // the largest promise
	after   locking.Token // the promises must exceed it; 0 in the first round
	asked   int           // when this operation began

	held, past int // numbers of the grant in world.grants, and of this owner's previous grant; 0: none
	known      int // until then the driver keeps the grant
	renewed    int // the grant that is being renewed
	second     bool
	missed     []letter // the second renewals for masters without the lock, after one more round that begins now
	lacking    []letter // the same of the round under way, or of the last one
}

func (w *world) act(c *simClient) {
	switch c.phase {
	case idle:
		w.start(c)
	case asking:
		w.ask(c)
	case holding:
		w.hold(c)
	case renewing:
		w.renew(c)
	}
}

// start begins an acquisition as another owner, or again as the same.
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
		toSend: c.toSend, ballot: c.ballot, arrived: c.arrived,
	}
	if w.chance(6) {
		c.from = w.nameOne(name)
	}
	w.begin(c)
}

// begin begins the first round of an acquisition.
func (w *world) begin(c *simClient) {
	w.operation(c, asking)
	c.attempt, c.after = w.begun, 0
	w.newBallot(c)
}

// operation begins a round of requests to all masters.
func (w *world) operation(c *simClient, p phase) {
	w.begun++
	c.phase, c.began, c.asked = p, w.begun, w.now
	c.votes = votes{n: w.n}
	c.toSend = c.toSend[:0]
	for i := range w.masters {
		c.toSend = append(c.toSend, i)
	}
	w.shuffle(c.toSend)
}

func (w *world) shuffle(s []int) { w.rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] }) }

func (c *simClient) next() int {
	i := c.toSend[0]
	c.toSend = append(c.toSend[:0], c.toSend[1:]...)
	return i
}

// ask delivers one request for a promise, or loses it or its reply.
func (w *world) ask(c *simClient) {
	i := c.next()
	q := simAsk{name: c.name, owner: c.owner, attempt: c.attempt, ttl: c.ttl, hint: w.hint(c), after: c.after, from: c.from, now: w.now}
	if !w.timed {
		q.ttl = never
	}
	if w.chance(8) {
		w.send(letter{what: lateAsk, to: i, ask: q})
	}
	m := w.masters[i]
	if !w.chance(12) {
		a := answer[promise]{master: &w.indexes[i], value: m.promise(q, w.rules)}
		if w.chance(12) {
			a.err = errLost
		}
		c.ballot.take(a)
		if a.err == nil && a.value.code == codePromised {
			c.arrived = append(c.arrived, w.now)
		}
		if c.after > 0 && w.loss && w.chance(5) && w.mayFall(m) {
			m.restartEmpty(w.begun, w.now, w.rules) // the worst moment
		}
	}
	// Some wait for all answers, some go on at the quorum.
	if len(c.toSend) > 0 && (!c.ballot.won() || w.chance(2)) {
		return
	}
	if !c.ballot.won() {
		w.giveUp(c, c.ballot.refused() > 0)
		return
	}
	var settled bool
	c.token, settled = chooseToken(w.n, c.ballot.tokens)
	if settled || w.rules.noWriteBack {
		if c.after == 0 {
			w.count.fast++
		}
		w.grant(c, w.settledAt(c))
		return
	}
	c.toSend, c.after = c.toSend[:0], c.token-1
	for _, m := range c.ballot.promised {
		c.toSend = append(c.toSend, m.index)
	}
	w.shuffle(c.toSend)
	w.newBallot(c)
}

// newBallot is for the answers to the next requests.
func (w *world) newBallot(c *simClient) {
	b := &c.ballot
	*b = ballot{n: w.n, promised: b.promised[:0], tokens: b.tokens[:0], claims: b.claims[:0], errs: b.errs[:0], runIDs: w.runIDs}
	c.arrived = c.arrived[:0]
}

// settledAt is when a majority had promised the token.
func (w *world) settledAt(c *simClient) int {
	same := 0
	for i, t := range c.ballot.tokens {
		if t == c.token {
			if same++; same == majority(w.n) {
				return c.arrived[i]
			}
		}
	}
	return w.now
}

// elapsed is the time since the operation began; a step is 10 ms. Without right clocks it is 0.
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
	c.phase, c.known = holding, w.now+c.ttl
}

// giveUp ends an acquisition that failed. After a refusal by a master the attempt is withdrawn.
func (w *world) giveUp(c *simClient, takeBack bool) {
	c.phase, c.known = idle, 0
	if takeBack {
		w.giveBack(c, false)
	}
}

// giveBack releases, or withdraws the attempts so far. Some masters get the request late, some
// never.
func (w *world) giveBack(c *simClient, release bool) {
	upto, what := c.attempt, lateWithdraw
	if release {
		upto, what = w.begun, lateRelease
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
