package redlock

import (
	"maps"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// grants holds the grants of this driver until they are released or have lapsed. An owner whose
// repeated request fails keeps its grant.
type grants struct {
	mu      sync.Mutex
	given   map[string]grant // by owner
	cleanAt int              // the size at which lapsed grants are deleted
}

// grant is the token of a grant, its number among the owner's attempts, and when it lapses.
type grant struct {
	token  locking.Token
	number int64
	until  time.Time
}

// add notes a grant, or that it was renewed.
func (g *grants) add(owner string, token locking.Token, number int64, ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.given) >= g.cleanAt {
		maps.DeleteFunc(g.given, func(_ string, have grant) bool { return have.until.Before(now) })
		g.cleanAt = 2*len(g.given) + 64
	}
	g.given[owner] = grant{token, number, now.Add(ttl)}
}

// remove deletes the owner's grant. With a token, only a grant with this token.
func (g *grants) remove(owner string, token locking.Token) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token == 0 || g.given[owner].token == token {
		delete(g.given, owner)
	}
}

// of returns the owner's grant; the zero value without one.
func (g *grants) of(owner string) grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.given[owner]; time.Now().Before(have.until) {
		return have
	}
	return grant{}
}
