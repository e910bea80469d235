// Package follow is about jobs that run after other jobs: who follows whom, and the delivery of
// events from the outbox of the upstream's partition to each follower.
package follow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	followScript  = ledger.Ship("follow/follow", followArgs{})
	relayScript   = ledger.Ship("follow/relay", relayArgs{})
	giveUpScript  = ledger.Ship("follow/giveup", giveUpArgs{})
	relayedScript = ledger.Ship("follow/relayed", relayedArgs{})
)

// RelayedFor is how long a job remembers a delivered event: much longer than an event stays in the
// outbox of a living cluster.
const RelayedFor = 10 * time.Minute

type followArgs struct {
	Upstream string `json:"upstream"`
	Job      string `json:"job"`
	Add      bool   `json:"add"`
	Epoch    string `json:"epoch"` // "" for none
}

// Follow adds a follower to a job: from then on the job's ends leave events for it. epoch is of the
// promotion that this is part of, 0 for a node's own registration: after a later promotion Follow
// returns ErrRefused and does nothing; so does Unfollow.
func Follow(ctx context.Context, l *ledger.Ledger, epoch int64, upstream, job string) error {
	return follow(ctx, l, followArgs{upstream, job, true, ledger.SpellOrNone(epoch)})
}

// Unfollow removes a follower.
func Unfollow(ctx context.Context, l *ledger.Ledger, epoch int64, upstream, job string) error {
	return follow(ctx, l, followArgs{upstream, job, false, ledger.SpellOrNone(epoch)})
}

func follow(ctx context.Context, l *ledger.Ledger, args followArgs) error {
	upstream, job := args.Upstream, args.Job
	word, err := followScript.Call(ctx, l.Client, l.Tag(upstream), "", args).Text()
	if err == nil && word == "standby" {
		return fmt.Errorf("%w: follow %s: a later promotion has begun", ledger.ErrRefused, upstream)
	}
	if err == nil && word == "full" {
		return fmt.Errorf("%w: %s cannot follow %s: it has 256 followers already", ledger.ErrRefused, job, upstream)
	}
	if shut, ok := strings.CutPrefix(word, "closed|"); ok && err == nil {
		return fmt.Errorf("follow %s: %w", upstream, ledger.ClosedBy(shut))
	}
	return l.Explain(ctx, "follow "+upstream, err)
}

// Followers reads the followers of some jobs, as the followers' nodes have registered them.
func Followers(ctx context.Context, l *ledger.Ledger, names []string) (map[string][]string, error) {
	byPart := l.ByPartition(len(names), func(i int) string { return names[i] })
	got := make([]*redis.SliceCmd, len(byPart))
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for part, places := range byPart {
			if len(places) == 0 {
				continue
			}
			fields := make([]string, len(places))
			for k, i := range places {
				fields[k] = names[i]
			}
			got[part] = p.HMGet(ctx, l.Keys[part].Followers, fields...)
		}
		return nil
	})
	if err != nil {
		return nil, l.Explain(ctx, "read who follows", err)
	}
	all := make(map[string][]string)
	for part, places := range byPart {
		for k, i := range places {
			if list := ledger.Text(got[part].Val()[k]); list != "" {
				all[names[i]] = strings.Split(list, ",")
			}
		}
	}
	return all, nil
}

// The answers of Relay.
const (
	Done      ledger.Status = "relayed"   // now, or before
	Unrelated ledger.Status = "unrelated" // there is no such job, or it follows another one now
	Full      ledger.Status = "full"      // too many runs wait beside it: later
	Unheld    ledger.Status = "unheld"    // no living node can run it: later
	Several   ledger.Status = "several"   // the follower takes these ticks one by one; one of the gaps has a run or row by now
)

type relayArgs struct {
	ledger.Clocked
	ledger.Retained

	Job      string       `json:"job"`
	Upstream string       `json:"upstream"`
	Run      string       `json:"run"`                   // id of the run to be
	Joined   string       `json:"joined"`                // the same, of a follower of several jobs
	Next     int64        `json:"next,string,omitempty"` // the cursor after the step, ms; 0 for none
	Tick     int64        `json:"tick,string"`           // first tick, ms
	Last     int64        `json:"last,string"`           // last tick, ms
	Count    int64        `json:"count"`
	Outcome  jobs.Outcome `json:"outcome"`
	Known    int64        `json:"known"`            // when it was known, ms
	Remember int64        `json:"remember"`         // for how long the id is remembered, ms
	Most     int          `json:"most"`             // pending runs in a partition
	Holders  []string     `json:"holders,omitzero"` // as in Event
	Unheld   bool         `json:"unheld"`           // as in Event
	Rest     bool         `json:"rest"`             // as in Event
	Gaps     []ledger.Gap `json:"gaps,omitzero"`    // as in Event
}

// Relay delivers an event to one follower: an end that it waits for becomes a pending run with the
// same tick, once; any other is recorded as skipped(upstream). A follower of several jobs waits for
// all of them. Relay may be repeated.
func Relay(ctx context.Context, l *ledger.Ledger, e ledger.Event, job string) (ledger.Status, error) {
	args := relayArgs{
		Clocked: l.Timed(ctx), Retained: l.Retained(), Job: job, Upstream: e.Upstream, Run: e.Run(job, e.Upstream), Joined: e.Run(job, ""), Next: e.Next, Tick: e.Tick, Last: e.Until, Count: e.Count,
		Outcome: e.Outcome, Known: e.At, Remember: RelayedFor.Milliseconds(), Most: ledger.PendingMax, Holders: e.Holders, Unheld: e.Unheld, Rest: e.Rest, Gaps: e.Gaps,
	}
	word, err := relayScript.Call(ctx, l.Client, l.Tag(job), job, args, e.Result).Text()
	if err != nil {
		return "", redisconn.Classify("tell "+job+" of "+e.Upstream, err)
	}
	if shut, ok := strings.CutPrefix(word, "closed|"); ok {
		return "", fmt.Errorf("tell %s of %s: %w", job, e.Upstream, ledger.ClosedBy(shut))
	}
	return ledger.Status(word), nil
}

type giveUpArgs struct {
	ledger.Clocked
	ledger.Retained

	Job string `json:"job"`
}

// GiveUpJoins gives up the old ticks of a job with several upstreams: older than the history is
// kept. An undecided tick is recorded as missed. A later call goes on where this one cannot.
func GiveUpJoins(ctx context.Context, l *ledger.Ledger, job string) error {
	op := "give up old ticks of " + job
	word, err := giveUpScript.Call(ctx, l.Client, l.Tag(job), job, giveUpArgs{l.Timed(ctx), l.Retained(), job}).Text()
	if shut, ok := strings.CutPrefix(word, "closed|"); ok && err == nil {
		return fmt.Errorf("%s: %w", op, ledger.ClosedBy(shut))
	}
	return redisconn.Classify(op, err)
}

type relayedArgs struct {
	Server string `json:"server"` // id of the caller's epoch, "" for any
	Event  string `json:"event"`
}

// Relayed removes an event from the outbox after its delivery to all followers. It returns
// ErrServer, and the event stays, in another epoch than At's.
func Relayed(ctx context.Context, l *ledger.Ledger, e ledger.Event) error {
	word, err := relayedScript.Call(ctx, l.Client, l.Tag(e.Upstream), "", relayedArgs{l.Known, e.Record()}).Text()
	if err == nil && word == "server" {
		return ledger.ErrServer
	}
	return redisconn.Classify("empty the outbox", err)
}
