package redlock

import "github.com/escapement/escapement/locking"

// simLock is one of a master's locks.
type simLock struct {
	owner   string // "" for a free lock
	token   locking.Token
	attempt int // the owner's latest that is known here
	until   int // when it lapses
	life    int // the run_id under which the counter was last set
	counter locking.Token
	last    simGiven // the last grant, as far as this master knows
	before  simGiven // the one before
	back    string   // who gave it back last
	unseen  string   // who gave it back last without having it here
	topped  simGiven // what a top-up has put here, while nothing has taken it away: for a check, no script knows it
}

// simGiven is to whom a lock was given, and with which token.
type simGiven struct {
	owner string
	token locking.Token
}

// simAsk is one request of phase 1.
type simAsk struct {
	name       int
	owner      string
	attempt    int
	ttl        int
	hint, from locking.Token
	now        int
	keeps      bool // see rules.takeOverKeeps
}

// simMaster is one master: the scripts, in as few words as will do.
// TestScriptsFollowModel holds the two together.
type simMaster struct {
	life    int // its run_id, from 1
	voting  int // the life under which it votes
	largest locking.Token
	locks   [2]simLock
	lostAt  int // number of operations begun when it lost its state
	lostNow int // and the time
}

func newSimMaster() *simMaster { return &simMaster{life: 1, voting: 1} }

func (m *simMaster) votes() bool { return m.life == m.voting }

// at returns a lock as it is now.
func (m *simMaster) at(name, now int) *simLock {
	l := &m.locks[name]
	if l.owner != "" && now >= l.until {
		l.free()
	}
	return l
}

func (l *simLock) free() { l.owner, l.token, l.attempt, l.topped = "", 0, 0, simGiven{} }

// raise makes c the counter of a lock, which is owner's.
func (m *simMaster) raise(l *simLock, c locking.Token, owner string) {
	l.counter, l.life, m.largest, l.last.owner = c, m.life, max(m.largest, c), owner
}

func (m *simMaster) counter(l *simLock) locking.Token {
	if l.life != m.life {
		return max(l.counter, m.largest)
	}
	return l.counter
}

// promise is acquire.lua.
func (m *simMaster) promise(q simAsk) (p promise) {
	l := m.at(q.name, q.now)
	switch {
	case !m.votes():
		p.code = codeLostState
		return p
	case l.owner == q.owner:
		l.attempt = max(l.attempt, q.attempt)
	case l.owner != "" && l.token != q.from:
		p.code, p.held, p.largest = codeHeld, claim{owner: l.owner, token: l.token}, m.largest
		return p
	case l.back == q.owner:
		p.code, p.largest = codeReturned, m.largest
		return p
	default:
		token := max(m.counter(l)+1, q.hint)
		if q.keeps && l.owner != "" {
			token = l.token
		}
		if l.last.owner != q.owner {
			l.before = simGiven{}
			if l.life == m.life {
				l.before = l.last
			}
		}
		l.owner, l.token, l.attempt, l.topped = q.owner, token, q.attempt, simGiven{}
		m.raise(l, token, q.owner)
		l.last.token = token
	}
	l.until = q.now + q.ttl
	p.code, p.token, p.largest = codePromised, l.token, m.largest
	return p
}

// confirm is confirm.lua.
func (m *simMaster) confirm(name int, owner string, t locking.Token, number, now int, r rules) int {
	l := m.at(name, now)
	if r.blindWrite && m.votes() {
		m.raise(l, max(m.counter(l), t), l.last.owner)
		return codeYes
	}
	if !m.votes() || l.owner != owner || l.token > t && !r.plainAccept || l.attempt > number && !r.confirmLate {
		return 0
	}
	l.token, l.last.token, l.topped = t, t, simGiven{}
	m.raise(l, max(m.counter(l), t), owner)
	return codeYes
}

// renew is renew.lua.
func (m *simMaster) renew(name int, owner string, t locking.Token, until, now int, r rules) int {
	l := m.at(name, now)
	switch {
	case l.owner == "" && m.votes():
		return codeFree
	case l.owner == "":
		return codeLostState
	case l.owner != owner:
		return 0
	case l.token != t && !r.renewAnyToken:
		return codeOtherToken
	}
	l.until = until
	return codeYes
}

// topUp is topup.lua.
func (m *simMaster) topUp(name int, owner string, t locking.Token, number, until, now int, r rules) int {
	l := m.at(name, now)
	since := func(g simGiven) bool { return l.life == m.life && g.owner != owner && g.token >= t }
	switch {
	case r.topUpBlind:
	case !m.votes(), l.owner != "" && l.owner != owner, l.attempt > number && !r.topUpOver:
		return 0
	case l.owner == "" && (l.back == owner || l.unseen == owner), since(l.last), since(l.before):
		return 0
	}
	if !r.topUpKeeps || l.owner == "" {
		l.token = t
	}
	l.owner, l.attempt, l.until, l.topped = owner, number, until, simGiven{owner, t}
	m.raise(l, max(m.counter(l), t), owner)
	l.last.token = t
	l.before = l.last
	return codeYes
}

// release is release.lua.
func (m *simMaster) release(name int, owner string, upto int, release bool, now int) int {
	l := m.at(name, now)
	mine := l.owner == owner
	if mine && l.attempt > upto {
		return 0
	}
	if mine {
		l.free()
		if !release && l.last.owner == owner {
			l.last = l.before
		}
	}
	switch {
	case release && mine:
		l.back = owner
	case release:
		l.unseen = owner
	}
	switch {
	case mine || l.back == owner:
		return codeYes
	case l.owner != "":
		return 0
	case m.votes():
		return codeFree
	}
	return codeLostState
}

// restartEmpty loses everything.
func (m *simMaster) restartEmpty(begun, now int, r rules) {
	*m = simMaster{life: m.life + 1, voting: m.voting, lostAt: begun, lostNow: now}
	if r.amnesiacVote {
		m.voting = m.life
	}
}
