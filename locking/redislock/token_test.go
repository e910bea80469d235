package redislock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// TestTokensSurvive lets a store lose history and looks for a token that does
// not grow. Each event hits a lock that has been in use for longer than the
// guard, as docs/guarantees.md says.
func TestTokensSurvive(t *testing.T) {
	const sec = time.Second
	flush := func(l *lossy) { l.client.FlushAll(l.t.Context()) }
	events := map[string]struct {
		event func(l *lossy)
		back  time.Duration // how far the clock is behind afterwards
	}{
		"nothing":                                 {func(*lossy) {}, 0},
		"clock back, state kept":                  {func(*lossy) {}, 5 * sec},
		"FLUSHALL":                                {flush, 0},
		"FLUSHALL, clock back":                    {flush, 5 * sec},
		"restart without persistence":             {func(l *lossy) { flush(l); l.restart() }, 0},
		"restart without persistence, clock back": {func(l *lossy) { flush(l); l.restart() }, 5 * sec},
		"failover that lost 3 grants":             {(*lossy).failover, 0},
		"failover that lost 3 grants, clock back": {(*lossy).failover, 50 * sec},
		"two restarts, then FLUSHALL":             {func(l *lossy) { l.restarted(); l.restarted(); flush(l) }, 0},
		"two failovers, each lost the last grant": {func(l *lossy) { l.failedTwice() }, 0},
	}
	for name, tt := range events {
		t.Run(name, func(t *testing.T) {
			l := newLossy(t)
			l.grant()
			l.pass(2 * time.Minute)
			for range 6 {
				l.grant()
				l.pass(sec)
			}
			tt.event(l)
			l.pass(-tt.back)
			for range 3 {
				l.grant()
				l.pass(time.Millisecond)
			}
		})
	}
}

// lossy is a store whose clock and memory a test controls.
type lossy struct {
	t      *testing.T
	server *redistest.Embedded
	client *redis.Client
	driver *Driver
	now    time.Time
	tokens []locking.Token
}

func newLossy(t *testing.T) *lossy {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := e.Client()
	t.Cleanup(func() { _ = c.Close() })
	l := &lossy{t: t, server: e, client: c, driver: NewDriver(c, Config{}), now: time.Now()}
	l.pass(0)
	return l
}

func (l *lossy) pass(d time.Duration) {
	l.now = l.now.Add(d)
	l.server.Mini().SetTime(l.now)
}

// grant takes and gives back the lock, and checks the token.
func (l *lossy) grant() {
	l.t.Helper()
	owner := fmt.Sprint(len(l.tokens))
	g, err := l.driver.Acquire(l.t.Context(), locking.Request{Name: "a", Owner: owner, TTL: time.Minute})
	if errors.Is(err, locking.ErrUnreachable) { // a connection from before the restart
		g, err = l.driver.Acquire(l.t.Context(), locking.Request{Name: "a", Owner: owner, TTL: time.Minute})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if n := len(l.tokens); n > 0 && g.Token <= l.tokens[n-1] {
		l.t.Errorf("token %d after %d", g.Token, l.tokens[n-1])
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

// failedTwice goes to one server and on to a third, which has not heard of what the second granted.
func (l *lossy) failedTwice() {
	key := lockKeys(DefaultNamespace, "a")[1]
	known := l.client.HGetAll(l.t.Context(), key).Val()
	l.restarted()
	l.client.HSet(l.t.Context(), key, known)
	l.server.SetRunID(strings.Repeat("e", 40))
}

// failover goes to a server that has not heard of the last three grants.
func (l *lossy) failover() {
	l.server.SetRunID(strings.Repeat("f", 40))
	l.client.HSet(l.t.Context(), lockKeys(DefaultNamespace, "a")[1], "t", l.tokens[len(l.tokens)-4])
}
