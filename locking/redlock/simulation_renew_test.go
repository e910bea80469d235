package redlock

import "github.com/escapement/escapement/locking"

// hold is one action of a holder: mostly it renews and gives back.
func (w *world) hold(c *simClient) {
	switch roll := w.rng.IntN(100); {
	case len(c.lacking) > 0 && !w.chance(6): // the round before a lock is set
		w.beginRenew(c, c.renewed, false)
	case roll < 40:
		w.beginRenew(c, c.held, false)
	case roll < 50:
		w.askAgain(c)
	case roll < 56 && c.past != 0:
		w.beginRenew(c, c.past, false) // of this owner's earlier grant: it comes late
	case roll < 85:
		w.giveBack(c, true)
		c.phase, c.owner = idle, ""
	case roll < 95:
		c.phase, c.owner = idle, "" // it died unnoticed
	}
}

// askAgain repeats the request as the same owner. A grant that the driver keeps is renewed.
func (w *world) askAgain(c *simClient) {
	w.count.again++
	if c.held != 0 && w.now < c.known && !w.rules.freshSecond {
		w.beginRenew(c, c.held, true)
		return
	}
	w.begin(c)
}

func (w *world) beginRenew(c *simClient, grant int, second bool) {
	w.operation(c, renewing)
	if grant != c.renewed {
		c.lacking = nil
	}
	c.renewed, c.second, c.missed, c.lacking = grant, second, c.lacking, nil
}

// renew delivers one renewal, or loses it or its reply.
func (w *world) renew(c *simClient) {
	i, g := c.next(), &w.grants[c.renewed-1]
	if w.chance(8) {
		w.send(letter{what: lateRenew, to: i, name: c.name, owner: c.owner, token: g.token, ttl: c.ttl, attempt: g.number})
	}
	if !w.chance(12) {
		l := letter{what: lateRenew, to: i, name: c.name, owner: c.owner, token: g.token, ttl: c.ttl, attempt: g.number}
		code, err := w.renewAt(l), error(nil)
		if w.chance(12) {
			err = errLost
		}
		c.votes.count(code, err)
		w.lacks(l, code)
	}
	if c.votes.over() || len(c.toSend) == 0 {
		w.decide(c, g)
	}
}

// decide ends a renewal. Masters that have no request yet get it later.
func (w *world) decide(c *simClient, g *granted) {
	answer := c.votes.renewal(w.elapsed(c))
	for _, i := range c.toSend {
		w.send(letter{what: lateRenew, to: i, name: c.name, owner: c.owner, token: g.token, ttl: c.ttl, attempt: g.number})
	}
	c.phase = holding
	switch answer {
	case locking.Renewed:
		w.kept(c, g)
		c.known = w.now + c.ttl
		for _, l := range c.missed {
			w.set(l)
		}
		if c.second {
			w.count.kept++
		}
	case locking.Gone, locking.Revoked:
		w.gone(c, g)
		if c.renewed != c.held {
			return // the driver has a later grant
		}
		c.known, c.phase = 0, idle
		if c.second {
			w.begin(c)
		}
	case locking.Unknown: // it is tried again
	}
}
