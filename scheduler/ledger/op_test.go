package ledger

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	asserts  []Assertion
	server   string // run_id of the server that the caller knows, "" for any
	defs     []Definition
	job, run string  // of what an operator does, and of a follower
	upstream string  // follow, unfollow
	trigger  Trigger // its run is run
	pause    Pause
	rewind   Rewind
	event    Event // relay, relayed
	late     Late  // postpone, until
	until    int64
	epoch    int64 // switch, and what belongs to a promotion
	raise    Promotion
	promotes bool   // follow, unfollow: as part of a promotion
	part     int    // gate: of a partition
	gate     string // as it is stored, "" for none
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
	answers  []Answer
	words    []Word
	renewed  []locking.RenewAnswer
	defined  []Defined
	asserted []Asserted
	word     Word
	run      string
	err      string
}

func failed(err error) string {
	if err == nil {
		return ""
	}
	var clock *ClockError
	var closed *ClosedError
	switch {
	case errors.As(err, &closed):
		return fmt.Sprintf("closed %+v", *closed)
	case errors.As(err, &clock):
		return fmt.Sprintf("clock %d believed %d", clock.Redis.UnixMilli(), clock.Believed.UnixMilli())
	case errors.Is(err, ErrServer):
		return "server"
	case errors.Is(err, ErrUnknownJob):
		return "unknown job"
	case errors.Is(err, ErrUnknownRun):
		return "unknown run"
	case errors.Is(err, ErrRefused):
		return "refused"
	case errors.Is(err, ErrForeign):
		return "foreign"
	}
	return "error: " + err.Error()
}

// on does the op to a server.
func (o op) on(ctx context.Context, r *rig) reply {
	var out reply
	var err error
	led := r.led.At(o.server)
	switch o.kind {
	case "claim":
		out.answers, err = led.Claim(ctx, o.by, o.now, o.claims)
	case "settle":
		out.words, err = led.Settle(ctx, o.reports)
	case "renew":
		out.renewed, err = led.Renew(ctx, o.renewals)
	case "reassert":
		out.asserted, err = led.Reassert(ctx, o.now, o.server, o.asserts)
	case "reap":
		out.words, err = r.led.Reap(ctx, o.now, r.identity, o.seen)
	case "unclaim":
		out.words, err = r.led.Unclaim(ctx, o.returns)
	case "define":
		out.defined, err = r.led.Define(ctx, o.now, o.defs)
	case "switch":
		out.defined, err = r.led.Switch(ctx, o.now, o.epoch, o.defs)
	case "raise":
		err = r.led.Raise(ctx, o.raise)
	case "gate":
		err = setGate(ctx, r.client, r.led.keys[o.part].gate, o.gate)
	case "plant":
		err = o.plant.on(ctx, r.client, r.led.keys[r.led.Partition(o.plant.job)])
	default:
		out.word, out.run, err = o.operate(ctx, r)
	}
	out.err = failed(err)
	return out
}

// operate does what an operator asks for, and what belongs to jobs that follow others.
func (o op) operate(ctx context.Context, r *rig) (word Word, run string, err error) {
	switch o.kind {
	case "trigger":
		run, err = r.led.Trigger(ctx, o.job, o.trigger)
	case "cancel":
		word, err = r.led.Cancel(ctx, o.job, o.run, o.pause.Author, o.pause.Reason)
	case "rerun":
		run, err = r.led.Rerun(ctx, o.job, o.run)
	case "pause":
		err = r.led.Pause(ctx, o.job, o.pause)
	case "resume":
		err = r.led.Resume(ctx, o.job)
	case "rewind":
		word, err = r.led.Rewind(ctx, o.now, o.rewind)
	case "remove":
		err = r.led.Remove(ctx, o.job)
	case "follow", "unfollow":
		err = o.follow(ctx, r)
	case "relay":
		word, err = r.led.Relay(ctx, o.event, o.job)
	case "relayed":
		err = r.led.Relayed(ctx, o.event)
	case "postpone":
		err = r.led.Postpone(ctx, o.late, o.until)
	default:
		err = errors.New("no such op: " + o.kind)
	}
	return word, run, err
}

// follow is a node's own wish, or part of a promotion.
func (o op) follow(ctx context.Context, r *rig) error {
	p := Promotion{Epoch: o.epoch}
	switch {
	case o.kind == "follow" && o.promotes:
		return p.Follow(ctx, r.led, o.upstream, o.job)
	case o.kind == "follow":
		return r.led.Follow(ctx, o.upstream, o.job)
	case o.promotes:
		return p.Unfollow(ctx, r.led, o.upstream, o.job)
	default:
		return r.led.Unfollow(ctx, o.upstream, o.job)
	}
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

// String is the op's kind, the caller's clock, and whatever is not zero of the rest.
func (o op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s now %d", o.kind, o.now)
	v := reflect.ValueOf(o)
	for i := 2; i < v.NumField(); i++ {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case f.IsZero():
		case f.Kind() == reflect.Slice:
			for j := range f.Len() {
				fmt.Fprintf(&b, "\n    %+v", f.Index(j))
			}
		default:
			fmt.Fprintf(&b, " %s %+v", name, f)
		}
	}
	return b.String()
}

func (r reply) String() string {
	return strings.TrimPrefix(many(r.answers)+many(r.words)+many(r.renewed)+many(r.defined)+many(r.asserted)+
		fmt.Sprintf("\n  %s %s %s", r.word, r.run, r.err), "\n")
}

func many[T any](list []T) string {
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "\n    %+v", x)
	}
	return b.String()
}
