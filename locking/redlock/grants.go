package redlock

import (
	"maps"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// grants holds the grants of this driver until they are released or have lapsed. An owner that asks again, and
// fails, keeps its grant.
type grants struct {
	mu      sync.Mutex
	given   map[string]grant
	cleanAt int // the size at which lapsed grants are deleted
}

// grant is the token of a grant, and when it lapses.
type grant struct {
	token locking.Token
	until time.Time
}

func (g *grants) add(owner string, token locking.Token, ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.given == nil {
		g.given = make(map[string]grant)
	}
	if len(g.given) >= g.cleanAt {
		maps.DeleteFunc(g.given, func(_ string, have grant) bool { return have.until.Before(now) })
		g.cleanAt = 2*len(g.given) + 64
	}
	g.given[owner] = grant{token, now.Add(ttl)}
}

func (g *grants) remove(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.given, owner)
}

// forget removes a grant, unless the owner has another token by now.
func (g *grants) forget(owner string, token locking.Token) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given[owner].token == token {
		delete(g.given, owner)
	}
}

// token returns the token of the owner's grant, or 0.
func (g *grants) token(owner string) locking.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.given[owner]; time.Now().Before(have.until) {
		return have.token
	}
	return 0
}
