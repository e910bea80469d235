package redlock

import (
	"maps"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// grants are the owners that this driver has granted a lock to, until it is
// released or has lapsed. An owner that asks again, and fails, keeps what it has.
type grants struct {
	mu      sync.Mutex
	given   map[string]given
	cleanAt int // forget those that have lapsed when there are so many
}

// given is one grant.
type given struct {
	token locking.Token
	until time.Time
}

func (g *grants) add(owner string, token locking.Token, ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.given == nil {
		g.given = make(map[string]given)
	}
	if len(g.given) >= g.cleanAt {
		maps.DeleteFunc(g.given, func(_ string, have given) bool { return have.until.Before(now) })
		g.cleanAt = 2*len(g.given) + 64
	}
	g.given[owner] = given{token, now.Add(ttl)}
}

func (g *grants) remove(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.given, owner)
}

// forget is remove, unless the owner has been granted another token since.
func (g *grants) forget(owner string, token locking.Token) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given[owner].token == token {
		delete(g.given, owner)
	}
}

// token returns that of what the owner has, 0 when it has nothing.
func (g *grants) token(owner string) locking.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.given[owner]; time.Now().Before(have.until) {
		return have.token
	}
	return 0
}
