package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

var errTaken = fmt.Errorf("%s: %w", recipeKey, locking.ErrHeld)

// believed is the holding of a recipe: its machine goes on working until the
// time is over that it asked for, or it gave the lock back.
type believed struct {
	until time.Time // zero: it never doubts
	back  func(ctx context.Context) error
	given bool
}

func (b *believed) Valid() bool {
	return !b.given && (b.until.IsZero() || time.Now().Before(b.until))
}

func (b *believed) Release(ctx context.Context) error {
	b.given = true
	return b.back(ctx)
}

// answer makes errTaken of the two ways in which Redis says that a key was there.
func answer(c *redis.Cmd) error {
	n, err := c.Result()
	if errors.Is(err, redis.Nil) || n == int64(0) {
		return errTaken
	}
	return err
}

// polled waits as the recipes do: it tries again each half second.
func polled(try func(ctx context.Context) (holding, error)) taking {
	return func(ctx context.Context, wait bool) (holding, error) {
		for {
			h, err := try(ctx)
			if err == nil || !wait || !errors.Is(err, locking.ErrHeld) {
				return h, err
			}
			<-time.After(500 * time.Millisecond)
		}
	}
}

func deletes(m *machine) func(ctx context.Context) error {
	return func(ctx context.Context) error { return m.client.Do(ctx, "DEL", recipeKey).Err() }
}

// setNX is recipe a: SETNX and DEL.
func setNX(_ testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		if err := answer(m.client.Do(ctx, "SETNX", recipeKey, m.name)); err != nil {
			return nil, err
		}
		return &believed{back: deletes(m)}, nil
	})
}

// setNXExpire is recipe b: the expiry comes with a second command.
func setNXExpire(_ testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		until := time.Now().Add(m.ttl)
		if err := answer(m.client.Do(ctx, "SETNX", recipeKey, m.name)); err != nil {
			return nil, err
		}
		if err := m.client.Do(ctx, "PEXPIRE", recipeKey, m.ttl.Milliseconds()).Err(); err != nil {
			return nil, err
		}
		return &believed{until: until, back: deletes(m)}, nil
	})
}

// getSet is recipe c: the value says when the lock ends, by the clock of whoever
// wrote it, and who finds it ended writes its own with GETSET.
func getSet(_ testing.TB, m *machine) taking {
	m.looks = true
	return polled(func(ctx context.Context) (holding, error) {
		until := m.now().Add(m.ttl)
		ended := func(ms int64) bool { return ms <= m.now().UnixMilli() }
		mine := &believed{until: time.Now().Add(m.ttl), back: deletes(m)}
		err := answer(m.client.Do(ctx, "SETNX", recipeKey, until.UnixMilli()))
		if !errors.Is(err, locking.ErrHeld) {
			return mine, err
		}
		seen, err := m.client.Get(ctx, recipeKey).Int64()
		if err != nil {
			return nil, err
		}
		if !ended(seen) {
			return nil, errTaken
		}
		m.between()
		was, err := m.client.Do(ctx, "GETSET", recipeKey, until.UnixMilli()).Int64()
		if err != nil {
			return nil, err
		}
		if !ended(was) {
			return nil, errTaken // somebody was faster; its value is written over
		}
		return mine, nil
	})
}

// setPX takes the lock as the better recipes do, and gives it back in some way.
func setPX(back func(m *machine, value string) func(ctx context.Context) error) recipe {
	return func(_ testing.TB, m *machine) taking {
		taken := 0
		return polled(func(ctx context.Context) (holding, error) {
			taken++
			until, value := time.Now().Add(m.ttl), fmt.Sprint(m.name, taken)
			if err := answer(m.client.Do(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds())); err != nil {
				return nil, err
			}
			return &believed{until: until, back: back(m, value)}, nil
		})
	}
}

// setPXDel is recipe d: SET NX PX and DEL.
var setPXDel = setPX(func(m *machine, _ string) func(ctx context.Context) error { return deletes(m) })

// getThenDel is recipe e: it looks whose the lock is, and then deletes it.
var getThenDel = setPX(func(m *machine, value string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if now, err := m.client.Get(ctx, recipeKey).Result(); err != nil || now != value {
			return err
		}
		return deletes(m)(ctx)
	}
})

// setPXScript looks and deletes in one script: the recipe of f, g, h and j.
var setPXScript = setPX(func(m *machine, value string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return freeRaw.Run(ctx, m.client, []string{recipeKey}, value).Err()
	}
})

// retried is recipe f: the same over a client that repeats commands by itself,
// as go-redis does unless it is told not to.
func retried(tb testing.TB, m *machine) taking {
	o := m.server.Options()
	o.MaxRetries = 3
	again := *m
	again.client = m.net.Client(o)
	tb.Cleanup(func() { _ = again.client.Close() })
	return setPXScript(tb, &again)
}

// renewRaw keeps a key that has this value.
var renewRaw = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)

// watched is recipe g: a goroutine keeps the lock alive. It tries again after an
// error, ends when the lock is another's, and tells nobody.
func watched(tb testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		value := fmt.Sprint(m.name, time.Now().UnixNano())
		if err := answer(m.client.Do(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds())); err != nil {
			return nil, err
		}
		keeping, stop := context.WithCancel(tb.Context())
		done := make(chan struct{})
		go func() { // ends when stop is called or the lock is another's
			defer close(done)
			for {
				select {
				case <-time.After(m.ttl / 3):
				case <-keeping.Done():
					return
				}
				n, err := renewRaw.Run(keeping, m.client, []string{recipeKey}, value, m.ttl.Milliseconds()).Int()
				if err == nil && n == 0 {
					return
				}
			}
		}()
		end := func() { stop(); <-done }
		tb.Cleanup(end)
		return &believed{back: func(ctx context.Context) error {
			end()
			return freeRaw.Run(ctx, m.client, []string{recipeKey}, value).Err()
		}}, nil
	})
}
