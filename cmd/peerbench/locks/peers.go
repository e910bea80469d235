package locks

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/escapement/escapement/locking"
	ours "github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// ttl is each library's lease.
const ttl = 15 * time.Second

// contender takes a lock, waiting for it, and returns the function that gives it back.
type contender interface {
	lock(ctx context.Context, name string) (unlock func() error, err error)
	close()
}

// peer is one library, with the settings that its documentation shows.
type peer struct {
	name string
	open func(addr string) (contender, error)
}

var peers = []peer{
	{"escapement", openOurs},
	{"SET NX PX, one script, polled each 25 to 75 ms", openRaw},
	{"redsync", openRedsync},
	{"bsm/redislock, each 50 ms", openRedislock},
	{"rueidislock", openRueidislock},
}

func newClient(addr string) *redis.Client {
	o := redistest.ClientOptions(addr)
	o.Dialer = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }
	return redis.NewClient(o)
}

type ourContender struct {
	client *redis.Client
	locker *locking.Locker
}

func openOurs(addr string) (contender, error) {
	c := newClient(addr)
	return ourContender{c, ours.New(c, ours.Config{})}, nil
}

func (o ourContender) lock(ctx context.Context, name string) (func() error, error) {
	lease, err := o.locker.Acquire(ctx, name, locking.Options{TTL: ttl, Wait: time.Minute})
	if err != nil {
		return nil, err
	}
	return func() error { return lease.Release(ctx) }, nil
}

func (o ourContender) close() {
	o.locker.Close()
	_ = o.client.Close()
}

// rawContender is the usual hand-written lock: no token, no line, no keep-alive.
type rawContender struct{ client *redis.Client }

var (
	rawDelete = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	rawOwner  atomic.Int64
)

func openRaw(addr string) (contender, error) { return rawContender{newClient(addr)}, nil }

func (r rawContender) lock(ctx context.Context, name string) (func() error, error) {
	owner := strconv.FormatInt(rawOwner.Add(1), 10)
	for {
		err := r.client.SetArgs(ctx, name, owner, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			return func() error { return rawDelete.Run(ctx, r.client, []string{name}, owner).Err() }, nil
		}
		if !errors.Is(err, redis.Nil) {
			return nil, err
		}
		<-time.After(25*time.Millisecond + jitter(50*time.Millisecond))
	}
}

func (r rawContender) close() { _ = r.client.Close() }

type redsyncContender struct {
	client *redis.Client
	sync   *redsync.Redsync
}

func openRedsync(addr string) (contender, error) {
	c := newClient(addr)
	return redsyncContender{c, redsync.New(goredis.NewPool(c))}, nil
}

func (r redsyncContender) lock(ctx context.Context, name string) (func() error, error) {
	m := r.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1<<20))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := m.UnlockContext(ctx)
		return err
	}, nil
}

func (r redsyncContender) close() { _ = r.client.Close() }

type redislockContender struct {
	client *redis.Client
	locker *redislock.Client
}

func openRedislock(addr string) (contender, error) {
	c := newClient(addr)
	return redislockContender{c, redislock.New(c)}, nil
}

func (r redislockContender) lock(ctx context.Context, name string) (func() error, error) {
	l, err := r.locker.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(50 * time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(ctx) }, nil
}

func (r redislockContender) close() { _ = r.client.Close() }

type rueidislockContender struct{ locker rueidislock.Locker }

func openRueidislock(addr string) (contender, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			InitAddress: []string{addr},
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dial(ctx, addr)
			},
		},
		KeyMajority: 1, // one key: there is one server
		KeyValidity: ttl,
	})
	return rueidislockContender{l}, err
}

func (r rueidislockContender) lock(ctx context.Context, name string) (func() error, error) {
	_, cancel, err := r.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}

func (r rueidislockContender) close() { r.locker.Close() }
