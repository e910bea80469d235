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
	back    string   // the owner that released last
	set     simGiven // the lock that a second renewal has set here, until another takes it away: for a check, no script reads it
}

// simGiven is to whom a lock was given, and with which token.
type simGiven struct {
	owner string
	token locking.Token
}

// simAsk is one request of acquire.lua.
type simAsk struct {
	name        int
	owner       string
	attempt     int
	ttl         int
	hint, after locking.Token
	from        locking.Token
	now         int
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

func (l *simLock) free() { l.owner, l.token, l.attempt, l.set = "", 0, 0, simGiven{} }

// raise makes the counter of a lock at least c.
func (m *simMaster) raise(l *simLock, c locking.Token) {
	l.counter, l.life = max(m.counter(l), c), m.life
	m.largest = max(m.largest, l.counter)
}

func (m *simMaster) counter(l *simLock) locking.Token {
	if l.life != m.life {
		return max(l.counter, m.largest)
	}
	return l.counter
}

// promise is acquire.lua.
func (m *simMaster) promise(q simAsk, r rules) (p promise) {
	l := m.at(q.name, q.now)
	switch {
	case !m.votes():
		p.code = codeLostState
		return p
	case r.blindWrite && q.after > 0:
		m.raise(l, q.after+1)
		p.code, p.token = codePromised, q.after+1
		return p
	case l.owner == q.owner:
	case l.owner != "" && l.token != q.from:
		p.code, p.held = codeHeld, claim{owner: l.owner}
		return p
	case l.back == q.owner:
		p.code = codeReturned
		return p
	case r.takeOverKeeps && l.owner != "":
		l.owner, l.attempt, l.set = q.owner, 0, simGiven{}
	default:
		l.owner, l.token, l.attempt, l.set = q.owner, max(m.counter(l)+1, q.hint), 0, simGiven{}
	}
	if before := l.token; q.attempt >= l.attempt || r.lateRaises {
		l.token = max(l.token, q.after+1)
		if r.plainAccept && q.after > 0 {
			l.token = q.after + 1
		}
		if l.token != before {
			l.set = simGiven{}
		}
	}
	m.raise(l, l.token)
	l.attempt, l.until = max(l.attempt, q.attempt), q.now+q.ttl
	p.code, p.token = codePromised, l.token
	return p
}

// simRenew is one call of renew.lua; seen is 0 in a first one.
type simRenew struct {
	name   int
	owner  string
	token  locking.Token
	number int
	seen   int
	until  int
}

// renew is renew.lua.
func (m *simMaster) renew(q simRenew, now int, r rules) int {
	l := m.at(q.name, now)
	switch {
	case r.setBlind && q.seen != 0:
	case l.owner == "" && !m.votes():
		return codeLostState
	case l.owner == "":
		late := int(m.counter(l)) != q.seen
		if late && !(r.setLate && q.seen != 0) || l.back == q.owner {
			return -int(m.counter(l))
		}
	case l.owner != q.owner:
		return 0
	case l.token != q.token && !r.renewAnyToken:
		return codeOtherToken
	default:
		l.until, l.attempt = q.until, max(l.attempt, q.number)
		return codeYes
	}
	l.owner, l.token, l.attempt, l.until, l.set = q.owner, q.token, q.number, q.until, simGiven{q.owner, q.token}
	m.raise(l, q.token)
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
	}
	if mine && release {
		l.back = owner
	}
	switch {
	case mine || l.back == owner:
		return codeYes
	case l.owner != "":
		return 0
	case m.votes():
		return -1
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
