//go:build unix

package redislock_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestTokensSurvive lets a store lose history and looks for a token that does not grow. Each event
// hits a lock that has been in use for longer than the guard, unless the event is for a young lock.
// docs/guarantees.md lists each event's result.
func TestTokensSurvive(t *testing.T) {
	const sec = time.Second
	flush := func(l *lossy) { l.client.FlushAll(l.t.Context()) }
	events := map[string]struct {
		event func(l *lossy)
		back  time.Duration // how far the clock is behind afterwards
		every time.Duration // between two grants before; default 1 s
		young bool          // the lock is new
		falls bool          // the rule does not cover the event
	}{
		"nothing":                                  {event: func(*lossy) {}},
		"clock back, state kept":                   {event: func(*lossy) {}, back: 5 * sec},
		"FLUSHALL":                                 {event: flush},
		"FLUSHALL, clock back":                     {event: flush, back: 5 * sec},
		"restart without persistence":              {event: func(l *lossy) { flush(l); l.restart() }},
		"restart without persistence, clock back":  {event: func(l *lossy) { flush(l); l.restart() }, back: 5 * sec},
		"failover that lost 3 grants":              {event: (*lossy).failover},
		"failover that lost 3 grants, clock back":  {event: (*lossy).failover, back: 50 * sec},
		"a longer failover, what it lost is short": {event: (*lossy).failover, back: 70 * sec, every: 100 * time.Millisecond},
		"a longer failover":                        {event: (*lossy).failover, back: 70 * sec, falls: true},
		"FLUSHALL of a new lock":                   {event: flush, young: true},
		"FLUSHALL of a new lock, clock back":       {event: flush, back: 2 * sec, every: 100 * time.Millisecond, young: true, falls: true},
		"two restarts, then FLUSHALL":              {event: func(l *lossy) { l.restarted(); l.restarted(); flush(l) }},
		"two failovers, each lost the last grant":  {event: func(l *lossy) { l.failedTwice() }},
	}
	for name, tt := range events {
		t.Run(name, func(t *testing.T) {
			l := newLossy(t)
			l.grant()
			if !tt.young {
				l.pass(2 * time.Minute)
			}
			for range 6 {
				l.grant()
				l.pass(cmp.Or(tt.every, sec))
			}
			tt.event(l)
			l.pass(-tt.back)
			for range 3 {
				l.grant()
				l.pass(time.Millisecond)
			}
			if l.fell != tt.falls {
				t.Errorf("it falls: %t; docs/guarantees.md says %t: %d", l.fell, tt.falls, l.tokens)
			}
		})
	}
}

// lossy is a store whose clock and memory a test controls.
type lossy struct {
	t      *testing.T
	server *redistest.Embedded
	client *redis.Client
	driver *redislock.Driver
	now    time.Time
	tokens []locking.Token
	fell   bool // one was not larger than the one before
}

func newLossy(t *testing.T) *lossy {
	e, c := redistest.StartEmbedded(t)
	l := &lossy{t: t, server: e, client: c, driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), now: time.Now()}
	l.pass(0)
	return l
}

func (l *lossy) pass(d time.Duration) {
	l.now = l.now.Add(d)
	l.server.Mini().SetTime(l.now)
}

// grant takes and gives back the lock, and looks at the token.
func (l *lossy) grant() {
	l.t.Helper()
	owner := fmt.Sprintf("%p %d", l, len(l.tokens)) // also beside another store
	g, err := l.driver.Acquire(l.t.Context(), request(owner, time.Minute))
	if errors.Is(err, locking.ErrUnreachable) { // a connection from before the restart
		g, err = l.driver.Acquire(l.t.Context(), request(owner, time.Minute))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if n := len(l.tokens); n > 0 && g.Token <= l.tokens[n-1] {
		l.fell = true
	}
	l.tokens = append(l.tokens, g.Token)
	if err := l.driver.Release(l.t.Context(), "a", owner); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lossy) restart() {
	if err := l.server.Restart(); err != nil {
		l.t.Fatal(err)
	}
}

// restarted restarts the store and uses it for a while.
func (l *lossy) restarted() {
	l.restart()
	l.pass(2 * time.Second)
	l.grant()
	l.pass(2 * time.Second)
}

// failedTwice goes to one server and on to a third, which lacks the second server's grants.
func (l *lossy) failedTwice() {
	key := lockKeys("a")[1]
	known := l.client.HGetAll(l.t.Context(), key).Val()
	l.restarted()
	l.client.HSet(l.t.Context(), key, known)
	l.server.SetRunID(strings.Repeat("e", 40))
}

// failover goes to a server that lacks the last three grants.
func (l *lossy) failover() {
	l.server.SetRunID(strings.Repeat("f", 40))
	l.client.HSet(l.t.Context(), lockKeys("a")[1], "t", l.tokens[len(l.tokens)-4])
}

// TestTokensOfASplit has two masters grant, each in turn, after a failover of which the old master
// is not aware. A guard that has accepted the new master's token refuses the old master's, for as
// long as the jump to the new one reached.
func TestTokensOfASplit(t *testing.T) {
	old, now := newLossy(t), newLossy(t)
	old.grant()
	old.pass(2 * time.Minute)
	old.grant()
	key := lockKeys("a")[1]
	now.client.HSet(t.Context(), key, old.client.HGetAll(t.Context(), key).Val())
	now.now = old.now
	was := time.Duration(0)
	for _, tt := range []struct {
		after   time.Duration
		refused bool
	}{{time.Second, true}, {30 * time.Second, true}, {59 * time.Second, true}, {62 * time.Second, false}} {
		for _, l := range []*lossy{now, old} {
			l.pass(tt.after - was)
			l.grant()
		}
		was = tt.after
		last := func(l *lossy) locking.Token { return l.tokens[len(l.tokens)-1] }
		if refused := last(old) < last(now); refused != tt.refused || old.fell || now.fell {
			t.Errorf("after %s the old master gives %d, the new one %d; want it refused: %t", tt.after, last(old), last(now), tt.refused)
		}
		old.pass(time.Millisecond) // which comes after the new one's
		now.pass(time.Millisecond)
	}
}

// TestTokensWithoutInfo: where a service forbids INFO, tokens follow the clock and the last one.
func TestTokensWithoutInfo(t *testing.T) {
	s := redistest.Start(t)
	if err := s.Client(t).Do(t.Context(), "acl", "setuser", "u", "on", ">p", "~*", "&*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	o := redistest.ClientOptions(s.Addr())
	o.Username, o.Password = "u", "p"
	c := redis.NewClient(o)
	defer c.Close()
	if err := c.Info(t.Context()).Err(); err == nil {
		t.Fatal("INFO is allowed")
	}
	d, last := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), locking.Token(0)
	for range 3 {
		g, err := d.Acquire(t.Context(), request("o", time.Minute))
		if err != nil || g.Token <= last || g.Token < time.Now().Add(-time.Minute).UnixMicro() {
			t.Errorf("token %d after %d, %v", g.Token, last, err)
		}
		last = g.Token
		if err := s.Client(t).FlushAll(t.Context()).Err(); err != nil { // the last owner is forgotten with the lock
			t.Fatal(err)
		}
	}
}
