package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// sealWait is how long a step of a move waits for replicas, and claimWait a claim.
	sealWait  = 2 * time.Second
	claimWait = 500 * time.Millisecond
	// touchFor is how long the key lives that a claim writes for the sake of WAIT.
	touchFor = time.Second
)

// Confirming returns the ledger for a caller whose claims are to wait until so many replicas have them; see
// Answer.Unconfirmed.
func (l *Ledger) Confirming(replicas int) *Ledger {
	there := *l
	there.confirm = replicas
	return &there
}

// waiting is what a script is to wait for when it has run.
type waiting struct {
	replicas int // 0 waits for nothing
	most     time.Duration
	touch    string // a key that is written first, of the script's slot; "" for none
}

// runAndWait runs a script on the master of its first key and then WAITs, over the same connection, because WAIT speaks of what its own
// connection wrote. It returns how many replicas have that; -1 when nobody knows, because the connection broke meanwhile.
func runAndWait(ctx context.Context, master redis.UniversalClient, script *redisconn.Script, w waiting, keys []string, args []any) (any, int, error) {
	reply, copies, err := queueAndWait(ctx, master, script.Queue, w, keys, args)
	if redisconn.UnknownScript(err) {
		reply, copies, err = queueAndWait(ctx, master, script.QueueSource, w, keys, args)
	}
	return reply, copies, err
}

func queueAndWait(ctx context.Context, master redis.UniversalClient, queue queueFunc, w waiting, keys []string, args []any) (any, int, error) {
	pipe := master.Pipeline()
	cmd := queue(ctx, pipe, keys, args...)
	copies := w.queue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error, read below
	reply, err := cmd.Result()
	return reply, copies(), err
}

// queue puts what is to be waited for into a pipeline. When that is over, copies says how many replicas have it; -1 when nobody knows.
func (w waiting) queue(ctx context.Context, pipe redis.Pipeliner) (copies func() int) {
	if w.replicas == 0 {
		return func() int { return 0 }
	}
	var touched *redis.StatusCmd
	if w.touch != "" {
		touched = pipe.Set(ctx, w.touch, "", touchFor)
	}
	waited := pipe.Do(ctx, "wait", w.replicas, w.most.Milliseconds())
	return func() int {
		n, err := waited.Int()
		if err != nil || touched != nil && touched.Err() != nil {
			return -1
		}
		return n
	}
}

// runEverywhere runs a script, whose answer begins with the word done if it did anything, and waits until every replica has what it wrote
// that its master has now.
func (l *Ledger) runEverywhere(ctx context.Context, script *redisconn.Script, keys []string, args []any) (any, error) {
	master, err := redisconn.Master(ctx, l.client, keys[0])
	if err != nil {
		return nil, err
	}
	replicas, err := redisconn.Replicas(ctx, master)
	var refused redis.Error // by a service that does not say
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	reply, copies, err := runAndWait(ctx, master, script, waiting{replicas, sealWait, ""}, keys, args)
	word := reply
	if list, ok := reply.([]any); ok && len(list) > 0 {
		word = list[0]
	}
	if err == nil && text(word) == "done" && copies < replicas {
		err = fmt.Errorf("%w: done, but only %d of %d replicas have it; run the step again", locking.ErrUnreachable, max(0, copies), replicas)
	}
	return reply, err
}

// claim runs the claim script in a partition, and says why what was granted is to be handed back, nil when enough replicas have it. A
// claim that is repeated writes nothing, and WAIT speaks of what its own connection wrote: so a key is written besides.
func (l *Ledger) claim(ctx context.Context, k keys, ks []string, args []any) (reply []any, unconfirmed, err error) {
	if l.confirm == 0 {
		reply, err = claimScript.Run(ctx, l.client, ks, args...).Slice()
		return reply, nil, err
	}
	master, err := redisconn.Master(ctx, l.client, ks[0])
	if err != nil {
		return nil, nil, err
	}
	got, copies, err := runAndWait(ctx, master, claimScript, waiting{l.confirm, claimWait, k.confirm}, ks, args)
	reply, _ = got.([]any)
	return reply, l.short(copies), err
}

// short is the error of too few copies, nil when there are enough.
func (l *Ledger) short(copies int) error {
	if copies >= l.confirm {
		return nil
	}
	return fmt.Errorf("%w: granted, but only %d of the %d replicas have it that are to confirm it", locking.ErrUnreachable, max(0, copies), l.confirm)
}

// Confirmed asks the masters of some partitions whether enough replicas have what is written there now: in which of them a claim would
// be confirmed, or why not in all.
func (l *Ledger) Confirmed(ctx context.Context, parts []int) (confirmed []int, err error) {
	return l.ofMasters(ctx, parts, func(p int) error {
		master, err := redisconn.Master(ctx, l.client, l.keys[p].confirm)
		if err != nil {
			return err
		}
		pipe := master.Pipeline()
		copies := waiting{l.confirm, claimWait, l.keys[p].confirm}.queue(ctx, pipe)
		if _, err := pipe.Exec(ctx); err != nil {
			return redisconn.Explain("ask whether replicas follow", err)
		}
		return l.short(copies())
	})
}
