package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// op is one call of the ledger, or one tampering with its keys, as data: it can be done to a
// server, to the model, and be printed.
type op struct {
	kind     string
	now      int64 // the caller's idea of Redis' time, ms
	by       Claimer
	claims   []Claim
	reports  []Report
	renewals []locking.Renewal
	seen     []Lease
	returns  []Return
	defs     []Definition
	job, run string // trigger
	payload  []byte
	plant    plant
}

// plant writes a record behind the ledger's back: a foreign one in the place of an own one
// (what: entry, run, pending), the own one back again (back), or a foreign row (what: row).
type plant struct {
	what, job, name string // name: of the entry or run
	record          string
	back            bool
}

// reply is what one op was answered; only the field of its kind is set.
type reply struct {
	answers []Answer
	words   []Word
	renewed []locking.RenewAnswer
	defined []Defined
	err     string
}

func failed(err error) string {
	if err == nil {
		return ""
	}
	var clock *ClockError
	switch {
	case errors.As(err, &clock):
		return fmt.Sprintf("clock %d believed %d", clock.Redis.UnixMilli(), clock.Believed.UnixMilli())
	case errors.Is(err, ErrUnknownJob):
		return "unknown job"
	case errors.Is(err, ErrForeign):
		return "foreign"
	}
	return "error: " + err.Error()
}

// on does the op to a server.
func (o op) on(ctx context.Context, r *rig) reply {
	var out reply
	var err error
	switch o.kind {
	case "claim":
		out.answers, err = r.led.Claim(ctx, o.by, o.now, o.claims)
	case "settle":
		out.words, err = r.led.Settle(ctx, o.reports)
	case "renew":
		out.renewed, err = r.led.Renew(ctx, o.renewals)
	case "reap":
		out.words, err = r.led.Reap(ctx, o.now, r.identity, o.seen)
	case "unclaim":
		out.words, err = r.led.Unclaim(ctx, o.returns)
	case "trigger":
		err = r.led.Trigger(ctx, o.job, o.run, o.payload)
	case "define":
		out.defined, err = r.led.Define(ctx, o.now, o.defs)
	case "plant":
		err = o.plant.on(ctx, r.client, r.led.keys[r.led.Partition(o.plant.job)])
	default:
		err = errors.New("no such op: " + o.kind)
	}
	out.err = failed(err)
	return out
}

func (p plant) on(ctx context.Context, client *redis.Client, k keys) error {
	switch p.what {
	case "entry":
		return client.HSet(ctx, k.jobs, p.name, p.record).Err()
	case "run":
		return client.HSet(ctx, k.runs, p.name, p.record).Err()
	case "pending":
		return client.HSet(ctx, k.waiting, p.name, p.record).Err()
	default:
		return client.RPush(ctx, k.history+p.job, p.record).Err()
	}
}

func (o op) String() string {
	s := fmt.Sprintf("%s now %d", o.kind, o.now)
	switch o.kind {
	case "claim":
		s += " by " + o.by.ID + many(o.claims)
	case "settle":
		s += many(o.reports)
	case "renew":
		s += many(o.renewals)
	case "reap":
		s += many(o.seen)
	case "unclaim":
		s += many(o.returns)
	case "trigger":
		s += fmt.Sprintf(" %s run %s payload %q", o.job, o.run, o.payload)
	case "define":
		s += many(o.defs)
	case "plant":
		s += fmt.Sprintf(" %+v", o.plant)
	}
	return s
}

func (r reply) String() string {
	return strings.TrimPrefix(many(r.answers)+many(r.words)+many(r.renewed)+many(r.defined)+"\n  "+r.err, "\n")
}

func many[T any](list []T) string {
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "\n    %+v", x)
	}
	return b.String()
}
