package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// session is one ZooKeeper session after the other with the same time-out: the library opens the next one when it has
// expired. A call is sent as soon as there is a connection.
type session struct {
	client *Client
	zk     *zk.Conn
	events <-chan zk.Event // closed when the library's goroutines have ended
	link   *link

	held    atomic.Int64  // locks that may be held
	authing chan struct{} // capacity 1: a mutex for authenticated
	authed  atomic.Bool
}

func openSession(c *Client, timeout time.Duration) (*session, error) {
	s := &session{client: c, link: newLink(c.cfg.Dial, timeout), authing: make(chan struct{}, 1)}
	s.authed.Store(len(c.cfg.Auth) == 0)
	var err error
	s.zk, s.events, err = zk.Connect(c.servers, timeout,
		zk.WithDialer(s.link.connect), zk.WithHostProvider(new(hosts)), zk.WithLogger(logger{c.cfg.Logger}), zk.WithLogInfo(false))
	if err != nil {
		return nil, &locking.InputError{Field: "servers", Why: err.Error()}
	}
	return s, nil
}

// close is called once.
func (s *session) close() {
	if s.held.Load() > 0 {
		s.link.close() // before the request to close the session can be sent
	}
	s.zk.Close()
	s.link.close()
	for range s.events { // until it is closed
		continue
	}
}

// lasts returns how long the session lasts after a request that was answered, at least: two thirds of the time-out that
// the server has agreed to; 0 before there was a session.
//
// A follower reports the living sessions to the leader with its next ping, within half a tickTime.
// When the follower dies before that ping, the leader counts from the client's message before the
// request; an idle client sends a ping in each third of the time-out. The margin covers the half
// tickTime.
func (s *session) lasts() time.Duration { return time.Duration(s.link.agreed.Load()) / 3 * 2 }

// allows returns an *InputError if a lease may last longer than the session.
func (s *session) allows(ttl, delay time.Duration) error {
	if ttl+delay <= s.lasts() {
		return nil
	}
	return &locking.InputError{Field: "Options.TTL", Why: fmt.Sprintf("is %s, with Delay %s, together more than %s, two thirds of the session time-out; "+
		"use less, or raise maxSessionTimeout of the servers", ttl, delay, s.lasts())}
}

// authenticate sends ClientConfig.Auth, once. The library repeats it on each further connection.
func (s *session) authenticate(ctx context.Context) error {
	if s.authed.Load() {
		return nil
	}
	select {
	case s.authing <- struct{}{}:
		defer func() { <-s.authing }()
	case <-ctx.Done():
		return explain("authenticate", ctx.Err())
	}
	if s.authed.Load() {
		return nil
	}
	for _, a := range s.client.cfg.Auth {
		_, err := send(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.AddAuth(a.Scheme, a.Credentials) })
		if err != nil {
			return explain("authenticate with scheme "+a.Scheme, err)
		}
	}
	s.authed.Store(true)
	return nil
}

// call makes one request, which f sends. It returns when ctx ends: the request may take effect later then. The error
// wraps locking.ErrUnreachable, or is ZooKeeper's answer; then there is a value too.
func call[T any](ctx context.Context, s *session, op string, f func(c *zk.Conn) (T, error)) (T, error) {
	if err := s.authenticate(ctx); err != nil {
		var none T
		return none, err
	}
	v, err := send(ctx, s, f)
	if err != nil {
		err = explain(op+" at zookeeper "+strings.Join(s.client.servers, ","), err)
	}
	return v, err
}

type answer[T any] struct {
	v   T
	err error
}

// send runs f in a goroutine that ends with the answer, the connection or the client.
func send[T any](ctx context.Context, s *session, f func(c *zk.Conn) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	sent, came := time.Now(), make(chan answer[T], 1)
	if !s.client.run(func() {
		v, err := f(s.zk)
		came <- answer[T]{v, err}
	}) {
		return none, errors.New("the client is closed")
	}
	select {
	case a := <-came:
		return a.v, a.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.link.unanswered(sent)
		}
		return none, ctx.Err()
	}
}

// logger gives the library's messages to a slog.Logger.
type logger struct{ to *slog.Logger }

func (l logger) Printf(format string, args ...any) {
	l.to.Debug("zookeeper client", "message", fmt.Sprintf(format, args...))
}
