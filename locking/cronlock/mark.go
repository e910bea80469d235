package cronlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed claim.lua
var claimLua string

var claimScript = redisconn.NewScript("cron claim", claimLua)

// Answers of claim.lua.
const (
	codeRefused = 0
	codeClaimed = 1
	codeLate    = 2
	codeSkew    = 3
)

// callTimeout limits one call to Redis.
const callTimeout = time.Second

// errClaimed means that this tick, or a later one of the entry, was claimed before.
var errClaimed = errors.New("claimed before")

// tick is the subject of an entry's claim.
type tick struct {
	at    time.Time     // the instant that is claimed
	due   time.Time     // when the schedule fired: at, except with @every
	every time.Duration // the interval of @every; 0 for other schedules
}

// mark is the key with the largest claimed tick of an entry.
type mark struct {
	client redis.UniversalClient
	key    string
	skew   time.Duration
}

// claim records the tick for the lease with this token. Token 0 only checks whether the tick can be
// claimed. A call without an answer is repeated once: the same token gets the same answer.
//
// The error wraps errClaimed, locking.ErrLost when a lease with a larger token has claimed a tick, or
// locking.ErrUnreachable.
func (m mark) claim(ctx context.Context, t tick, token locking.Token) error {
	err := m.call(ctx, t, token)
	if errors.Is(err, locking.ErrUnreachable) {
		err = m.call(ctx, t, token)
	}
	return err
}

func (m mark) call(ctx context.Context, t tick, token locking.Token) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	op := "claim at redis " + redisconn.Addr(m.client)
	keep := 2*m.skew + t.every + time.Second // a claim may come at due - skew, and another of the same tick at due + skew
	reply, err := claimScript.Run(ctx, m.client, []string{m.key}, strconv.FormatInt(t.at.UnixMilli(), 10),
		t.due.UnixMilli(), token, lockredis.Millis(m.skew), lockredis.Millis(keep)).Slice()
	if err != nil {
		err = redisconn.Classify(op, err)
		redisconn.Refresh(ctx, m.client, err)
		return err
	}
	return read(op, reply)
}

// read converts the reply of claim.lua.
func read(op string, reply []any) error {
	var code int64
	var text string
	if !lockredis.Scan(reply, &code, &text) {
		return fmt.Errorf("%s: unexpected reply %.80q", op, fmt.Sprint(reply))
	}
	switch code {
	case codeClaimed:
		return nil
	case codeRefused:
		return fmt.Errorf("%s: %w: the largest claimed tick is %s", op, errClaimed, text)
	case codeLate:
		return fmt.Errorf("%s: %w: token %s has claimed a tick since", op, locking.ErrLost, text)
	case codeSkew:
		return fmt.Errorf("%s: the tick is %s ms away from redis' clock (minus: behind it); set this machine's clock, or Config.MaxSkew", op, text)
	}
	return fmt.Errorf("%s: unexpected reply %.80q", op, fmt.Sprint(reply))
}
