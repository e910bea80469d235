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

// sealWait is how long a step of a move waits for replicas, and claimWait a claim.
const (
	sealWait  = 2 * time.Second
	claimWait = 500 * time.Millisecond
)

// Confirming returns the ledger for claims that wait until so many replicas have them; see
// Answer.Unconfirmed.
func (l *Ledger) Confirming(replicas int) *Ledger {
	there := *l
	there.confirm = replicas
	return &there
}

// runEverywhere runs a script and waits until every present replica of the master has its writes.
// The script's answer begins with the word done if it wrote anything.
func (l *Ledger) runEverywhere(ctx context.Context, s *script, tag string, args any) (any, error) {
	keys := s.in(tag, "")
	master, err := redisconn.Master(ctx, l.client, keys[0])
	if err != nil {
		return nil, err
	}
	replicas, err := redisconn.Replicas(ctx, master)
	var refused redis.Error // by a service that hides its replicas
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	cmd, copies, unknown := s.RunAndWait(ctx, master, redisconn.Wait{Replicas: replicas, Most: sealWait}, keys, encoded(args))
	reply, err := cmd.Result()
	word := reply
	if list, ok := reply.([]any); ok && len(list) > 0 {
		word = list[0]
	}
	switch {
	case err != nil:
		return reply, err
	case unknown != nil:
		return reply, unknown
	case text(word) == "done" && copies < replicas:
		return reply, fmt.Errorf("%w: done, but only %d of %d replicas have it; run the step again", locking.ErrUnreachable, copies, replicas)
	}
	return reply, nil
}

// claim runs the claim script in a partition. unconfirmed is why the grants are to be handed back,
// nil when enough replicas have them.
func (l *Ledger) claim(ctx context.Context, k keys, ks, args []string) (reply []any, unconfirmed, err error) {
	if l.confirm == 0 {
		reply, err = evaluate(ctx, l.client, claimScript, ks, args).Slice()
		return reply, nil, err
	}
	cmd, copies, unknown := claimScript.RunAndWait(ctx, l.client, l.confirmation(k), ks, appendPlaces(nil, args)...)
	reply, err = cmd.Slice()
	return reply, l.lack(copies, unknown), err
}

// confirmation is the wait of a claim in a partition.
func (l *Ledger) confirmation(k keys) redisconn.Wait {
	return redisconn.Wait{Replicas: l.confirm, Most: claimWait, Touch: k.confirm}
}

// lack is the error of too few copies, or of not knowing how many there are; nil when there are
// enough.
func (l *Ledger) lack(copies int, unknown error) error {
	switch {
	case unknown != nil:
		return redisconn.Classify("wait for replicas", unknown)
	case copies < l.confirm:
		return fmt.Errorf("%w: only %d of the %d replicas have what was written that are to confirm it", locking.ErrUnreachable, copies, l.confirm)
	}
	return nil
}

// Confirmed returns nil when enough replicas have the latest writes of a partition's master: a
// claim would be confirmed.
func (l *Ledger) Confirmed(ctx context.Context, part int) error {
	master, err := redisconn.Master(ctx, l.client, l.keys[part].confirm)
	if err != nil {
		return redisconn.Classify("wait for replicas", err)
	}
	pipe := master.Pipeline()
	copies := l.confirmation(l.keys[part]).Queue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	return l.lack(copies())
}
