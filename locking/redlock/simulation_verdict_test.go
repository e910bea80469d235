package redlock

import "github.com/escapement/escapement/locking"

// granted is one acquisition that succeeded.
type granted struct {
	name       int
	owner      string
	token      locking.Token
	from       locking.Token
	began, won int  // of the acquisition
	number     int  // among the owner's attempts
	accepted   int  // when a majority had accepted it
	until      int  // its holder is sure of it until then
	taken      int  // when a take-over named it, 0 never: then it is not alone
	ended      bool // its holder was answered "gone", or releases it
}

// named is a token that a take-over names.
type named struct {
	name  int
	token locking.Token
	at    int
}

// nameOne returns a token to be taken over: the token at a majority, as Owner would return it, or
// an earlier one, as an operator may remember it.
func (w *world) nameOne(name int) (from locking.Token) {
	for _, m := range w.masters {
		same := 0
		l := m.at(name, w.now)
		for _, o := range w.masters {
			if p := o.at(name, w.now); l.owner != "" && p.owner == l.owner && p.token == l.token {
				same++
			}
		}
		if same >= majority(w.n) {
			from = l.token
		}
	}
	if len(w.grants) > 0 && w.chance(3) {
		if g := w.grants[w.rng.IntN(len(w.grants))]; g.name == name {
			from = g.token
		}
	}
	if from == 0 {
		return 0
	}
	w.named = append(w.named, named{name, from, w.now})
	for i := range w.grants {
		if g := &w.grants[i]; g.name == name && g.token == from && g.taken == 0 {
			g.taken = w.now
		}
	}
	return from
}

// sure reports whether the grant's holder counts on it.
func (w *world) sure(g *granted) bool {
	return w.timed && !g.ended && g.taken == 0 && w.now < g.until
}

// granted notes an acquisition, or that the same owner has got the same again.
func (w *world) granted(c *simClient, accepted int) {
	if c.held != 0 {
		g := &w.grants[c.held-1]
		if g.token == c.token {
			g.ended = false
			w.extend(c, g)
			return
		}
		if w.sure(g) {
			w.wrong(g.owner, " has token ", g.token, ", asks again, and gets token ", c.token)
		}
		g.ended, c.past = true, c.held
	}
	w.grants = append(w.grants, granted{name: c.name, owner: c.owner, token: c.token, from: c.from, began: c.asked, won: w.now, number: w.begun, accepted: accepted})
	c.held = len(w.grants)
	g := &w.grants[c.held-1]
	for _, n := range w.named {
		if n.name == g.name && n.token == g.token && g.taken == 0 {
			g.taken = n.at
		}
	}
	w.count.grants++
	if g.from != 0 {
		w.count.taken++
	}
	w.extend(c, g)
}

// extend: the holder is sure of it for a ttl from the beginning of the operation.
func (w *world) extend(c *simClient, g *granted) {
	g.until = max(g.until, c.asked+c.ttl)
	if !w.sure(g) {
		return
	}
	for i := range w.grants {
		if o := &w.grants[i]; o.name == g.name && o.owner != g.owner && w.sure(o) {
			w.wrong(g.owner, " with token ", g.token, " and ", o.owner, " with token ", o.token, " are both sure of the lock")
		}
	}
}

// kept: a renewal that was begun when another owner had been granted the lock later
// does not bring it back.
func (w *world) kept(c *simClient, g *granted) {
	w.count.renewed++
	for i := range w.grants {
		if o := &w.grants[i]; o.name == g.name && o.owner != g.owner && o.token > g.token && o.won < c.asked {
			w.wrong(g.owner, " renews token ", g.token, " after ", o.owner, " had token ", o.token)
		}
	}
	w.extend(c, g)
}

// gone: a holder that may rely on its lease is never answered "gone".
func (w *world) gone(c *simClient, g *granted) {
	w.count.gone++
	if w.sure(g) {
		w.wrong(g.owner, " is answered that token ", g.token, " is gone, and no other owner has it")
	}
	g.ended = true
}

// ends: its owner gives it back.
func (w *world) ends(c *simClient) {
	if c.held != 0 {
		w.grants[c.held-1].ended = true
	}
}

// verdict checks the grants: no token twice, and a larger one for an acquisition that began after
// another was granted, or was answered later, unless the lock was taken over before. A take-over
// has a larger token than the named one.
func (w *world) verdict() string {
	for i := range w.grants {
		b := &w.grants[i]
		if b.token <= b.from {
			w.wrong(b.owner, " took over token ", b.from, " and has token ", b.token)
		}
		for j := range w.grants {
			a := &w.grants[j]
			switch {
			case i == j || a.name != b.name:
			case a.token == b.token:
				w.wrong(a.owner, " and ", b.owner, " both have token ", b.token)
			case b.token > a.token:
			case a.won < b.began:
				w.wrong(b.owner, " began after ", a.owner, " had token ", a.token, ", and has token ", b.token)
			case w.timed && a.accepted < b.accepted && (b.taken == 0 || b.taken > b.won):
				w.wrong(b.owner, " was granted the lock after ", a.owner, " had token ", a.token, ", and has token ", b.token)
			}
		}
	}
	return w.bad
}
