package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/escapement/escapement/locking"
)

// player is one client of a history.
type player struct {
	story  *story
	tokens *sharedTokens
	driver locking.Driver
	net    Network
	id     int
	rng    *rand.Rand

	loose    bool
	share    locking.Share
	ttl      time.Duration
	late     time.Duration // see Store.Late
	acquired int           // so many owner values were used
	token    locking.Token
}

// step makes one call, now and then over a network that loses something.
func (p *player) step(ctx context.Context) {
	<-time.After(time.Duration(p.rng.Int64N(int64(p.scaled(historyPause)))))
	p.net.Delay(time.Duration(p.rng.Int64N(int64(p.scaled(historyCall) / 3))))
	switch p.rng.IntN(12) {
	case 0:
		p.net.LoseReply()
	case 1:
		p.net.CutRequests()
	case 2:
		p.net.CutReplies()
	}
	p.call(ctx, p.choose())
	p.net.Heal()
}

// scaled returns one of the times above in proportion to the ttl.
func (p *player) scaled(d time.Duration) time.Duration {
	slower := int(p.ttl / historyTTL)
	return time.Duration(slower) * d
}

// choose returns the next question.
func (p *player) choose() question {
	q := question{loose: p.loose, ttl: p.ttl, late: p.late, owner: p.owner()}
	switch n := p.rng.IntN(20); {
	case p.acquired == 0 || n < 7:
		p.acquired++
		q.kind, q.owner = askAcquire, p.owner()
	case n < 10: // the same once more: after a lost reply, a lapse, a release
		q.kind = askAcquire
	case n < 14:
		q.kind = askRelease
	case n < 17:
		q.kind, q.token = askRenew, max(p.token, 1)
	case n < 18:
		p.acquired++
		q.kind, q.owner, q.token = askAcquire, p.owner(), p.tokens.get()
	default:
		q.kind = askOwner
	}
	q.write = p.share.Mode != locking.Exclusive && q.owner%3 == 0
	return q
}

// sharer is the driver for q.
func (p *player) sharer(q question) locking.Driver {
	share := p.share
	if share == (locking.Share{}) {
		return p.driver
	}
	if q.write {
		share.Mode = locking.Write
	}
	return p.driver.(locking.Sharer).Share(share)
}

// owner is the number of the client's present owner value, 1 to 63.
func (p *player) owner() int { return 1 + p.id + historyClients*max(p.acquired-1, 0) }

// call sends q and notes the answer.
func (p *player) call(ctx context.Context, q question) {
	ctx, cancel := context.WithTimeout(ctx, p.scaled(historyCall))
	defer cancel()
	before := time.Since(p.story.start)
	a := p.ask(ctx, q)
	q.sent, a.came = before, time.Since(p.story.start)
	if a.kind == granted {
		p.token = a.token
		p.tokens.seen(a.token)
	}
	p.story.mu.Lock()
	defer p.story.mu.Unlock()
	p.story.ops = append(p.story.ops, porcupine.Operation{
		ClientId: p.id, Input: q, Call: int64(before), Output: a, Return: int64(a.came),
	})
}

func (p *player) ask(ctx context.Context, q question) answer {
	owner, driver := ownerValue(q.owner), p.sharer(q)
	switch q.kind {
	case askAcquire:
		g, err := driver.Acquire(ctx, locking.Request{Name: name, Owner: owner, TTL: q.ttl, From: q.token})
		if err == nil {
			return answer{kind: granted, token: g.Token, asked: g.Asked.Sub(p.story.start)}
		}
		return answerTo(err)
	case askRelease:
		return answerTo(driver.Release(ctx, name, owner))
	case askRenew:
		got, err := driver.Renew(ctx, []locking.Renewal{{Name: name, Owner: owner, Token: q.token, TTL: q.ttl}})
		switch {
		case err != nil || len(got) != 1 || got[0] == locking.Unknown:
			return answer{kind: unknownAnswer}
		case got[0] == locking.Gone || got[0] == locking.Revoked:
			return answer{kind: notOurs}
		}
		return answer{kind: done}
	case askOwner:
	}
	o, err := driver.Owner(ctx, name)
	switch {
	case err != nil:
		return answer{kind: unknownAnswer}
	case !o.Held():
		return answer{kind: free}
	}
	return answer{kind: heldBy, owner: ownerNumber(o.Owner), token: o.Token}
}

func answerTo(err error) answer {
	var held *locking.HeldError
	switch {
	case err == nil:
		return answer{kind: done}
	case errors.As(err, &held):
		return answer{kind: heldBy, owner: ownerNumber(held.Owner)}
	case errors.Is(err, locking.ErrLost):
		return answer{kind: notOurs}
	}
	return answer{kind: unknownAnswer} // any other error proves nothing about the lock
}

func ownerValue(n int) string { return fmt.Sprintf("owner-%d", n) }

func ownerNumber(s string) (n int) {
	if _, err := fmt.Sscanf(s, "owner-%d", &n); err != nil {
		return nobody
	}
	return n
}

type questionKind uint8

const (
	askAcquire questionKind = iota
	askRelease
	askRenew
	askOwner
)

// question is one call's request. Owners are numbers here, for a small state.
type question struct {
	kind  questionKind
	owner int
	token locking.Token // acquire: to be taken over, 0 none; renew: the grant's
	ttl   time.Duration
	sent  time.Duration // since the start
	late  time.Duration // see Store.Late
	loose bool          // of a quorum, see Store.Quorum
	write bool          // acquire: of a read-write lock, the whole of it
}

func (q question) String() string {
	what := [...]string{"acquire", "release", "renew", "owner"}[q.kind]
	if q.kind == askOwner {
		return what
	}
	return fmt.Sprintf("%s for %d, token %d", what, q.owner, q.token)
}

type answerKind uint8

const (
	unknownAnswer answerKind = iota // it may have taken effect
	granted
	heldBy
	done    // released, renewed
	notOurs // lost, gone
	free
)

// answer is the answer of one call.
type answer struct {
	kind  answerKind
	owner int
	token locking.Token
	asked time.Duration // Grant.Asked, since the start
	came  time.Duration // since the start
}

func (a answer) String() string {
	what := [...]string{"no answer", "granted", "held", "done", "not ours", "free"}[a.kind]
	return fmt.Sprintf("%s (owner %d, token %d)", what, a.owner, a.token)
}
