package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
)

// relayedFor is how long a job remembers a delivered event: much longer than an event stays in the
// outbox of a living cluster.
const relayedFor = 10 * time.Minute

// Event is the end of a tick, or of several ticks in a row, of an upstream job. It stays in the
// outbox of the job's partition until it is delivered to every follower.
type Event struct {
	Upstream    string
	Prev, Next  int64 // the step of the upstream's cursor; 0 for none
	Tick, Until int64 // first and last tick, ms
	Count       int64
	Outcome     jobs.Outcome
	At          int64  // when it was known, ms
	Result      []byte // of a success: JSON for the followers
	Followers   []string
	// Holders are the digests of the follower's definitions that living nodes hold; nil is unknown.
	// If the stored definition is not among them, no node can run the follower, and Relay answers a
	// success with RelayUnheld.
	Holders []string
	// Unheld: a success has waited long enough, so a follower that no node can run is recorded as
	// missed. Without Holders no node can.
	Unheld bool
	// Rest makes Relay record these ticks as skipped. The upstream did not run them, and followers
	// get no run for each of them. Gaps are the ticks without a row of the follower; nil when the
	// caller has not looked.
	Rest   bool
	Gaps   []Gap
	record string
}

// Gap is ticks in a row, ms. Next is the tick after them; 0 when there is none.
type Gap struct {
	First int64 `json:"first,string"`
	Last  int64 `json:"last,string"`
	Next  int64 `json:"next,string,omitempty"`
	Count int64 `json:"count"`
}

// join notes how the upstreams of one follower ended a tick.
type join struct {
	at          int64 // when the first of them had ended it, ms
	state, ends string
}

// eventOf reads an outbox row.
func eventOf(record string) (Event, error) {
	e := Event{record: record}
	read := e.readEvent
	if strings.HasPrefix(record, "2|") {
		read = e.readSuccess
	}
	return e, read(record)
}

// Record is the event's row in the outbox: no two that are there at once have the same.
func (e Event) Record() string { return e.record }

// run is the id of the run that an event leads to, one for each tick of an upstream; of a follower
// of several, upstream is "".
func (e Event) run(job, upstream string) string {
	name := job + "\n" + upstream + "\n" + strconv.FormatInt(e.Tick, 10)
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}

type followArgs struct {
	Upstream string `json:"upstream"`
	Job      string `json:"job"`
	Add      bool   `json:"add"`
	Epoch    string `json:"epoch"` // of the promotion that this is part of, "" for a node's own registration
}

// Follow adds a follower to a job: from then on the job's ends leave events for it.
func (l *Ledger) Follow(ctx context.Context, upstream, job string) error {
	return l.follow(ctx, followArgs{upstream, job, true, ""})
}

// Unfollow removes a follower.
func (l *Ledger) Unfollow(ctx context.Context, upstream, job string) error {
	return l.follow(ctx, followArgs{upstream, job, false, ""})
}

func (l *Ledger) follow(ctx context.Context, args followArgs) error {
	upstream, job := args.Upstream, args.Job
	word, err := followScript.call(ctx, l.client, l.tag(upstream), "", args).Text()
	if err == nil && word == "standby" {
		return fmt.Errorf("%w: follow %s: a later promotion has begun", ErrRefused, upstream)
	}
	if err == nil && word == "full" {
		return fmt.Errorf("%w: %s cannot follow %s: it has 256 followers already", ErrRefused, job, upstream)
	}
	if shut, ok := strings.CutPrefix(word, "closed|"); ok && err == nil {
		return fmt.Errorf("follow %s: %w", upstream, ClosedBy(shut))
	}
	return l.explain(ctx, "follow "+upstream, err)
}

// Followers reads the followers of some jobs, as the followers' nodes have registered them.
func (l *Ledger) Followers(ctx context.Context, names []string) (map[string][]string, error) {
	byPart := l.byPartition(len(names), func(i int) string { return names[i] })
	got := make([]*redis.SliceCmd, len(byPart))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for part, places := range byPart {
			if len(places) == 0 {
				continue
			}
			fields := make([]string, len(places))
			for k, i := range places {
				fields[k] = names[i]
			}
			got[part] = p.HMGet(ctx, l.keys[part].followers, fields...)
		}
		return nil
	})
	if err != nil {
		return nil, l.explain(ctx, "read who follows", err)
	}
	all := make(map[string][]string)
	for part, places := range byPart {
		for k, i := range places {
			if list := text(got[part].Val()[k]); list != "" {
				all[names[i]] = strings.Split(list, ",")
			}
		}
	}
	return all, nil
}

// The answers of Relay.
const (
	RelayDone      Status = "relayed"   // now, or before
	RelayUnrelated Status = "unrelated" // there is no such job, or it follows another one now
	RelayFull      Status = "full"      // too many runs wait beside it: later
	RelayUnheld    Status = "unheld"    // no living node can run it: later
	RelaySeveral   Status = "several"   // the follower takes these ticks one by one; one of the gaps has a run or row by now
)

type relayArgs struct {
	clocked
	retained

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
	Gaps     []Gap        `json:"gaps,omitzero"`    // as in Event
}

// Relay delivers an event to one follower: an end that it waits for becomes a pending run with the
// same tick, once; any other is recorded as skipped(upstream). A follower of several jobs waits for
// all of them. Relay may be repeated.
func (l *Ledger) Relay(ctx context.Context, e Event, job string) (Status, error) {
	args := relayArgs{
		clocked: l.timed(ctx), retained: l.retained(), Job: job, Upstream: e.Upstream, Run: e.run(job, e.Upstream), Joined: e.run(job, ""), Next: e.Next, Tick: e.Tick, Last: e.Until, Count: e.Count,
		Outcome: e.Outcome, Known: e.At, Remember: relayedFor.Milliseconds(), Most: pendingMax, Holders: e.Holders, Unheld: e.Unheld, Rest: e.Rest, Gaps: e.Gaps,
	}
	word, err := relayScript.call(ctx, l.client, l.tag(job), job, args, e.Result).Text()
	if err != nil {
		return "", redisconn.Classify("tell "+job+" of "+e.Upstream, err)
	}
	if shut, ok := strings.CutPrefix(word, "closed|"); ok {
		return "", fmt.Errorf("tell %s of %s: %w", job, e.Upstream, ClosedBy(shut))
	}
	return Status(word), nil
}

type giveUpArgs struct {
	clocked
	retained

	Job string `json:"job"`
}

// GiveUpJoins gives up the old ticks of a job with several upstreams: older than the history is
// kept. An undecided tick is recorded as missed. A later call goes on where this one cannot.
func (l *Ledger) GiveUpJoins(ctx context.Context, job string) error {
	op := "give up old ticks of " + job
	word, err := giveUpScript.call(ctx, l.client, l.tag(job), job, giveUpArgs{l.timed(ctx), l.retained(), job}).Text()
	if shut, ok := strings.CutPrefix(word, "closed|"); ok && err == nil {
		return fmt.Errorf("%s: %w", op, ClosedBy(shut))
	}
	return redisconn.Classify(op, err)
}

type relayedArgs struct {
	Server string `json:"server"` // id of the caller's epoch, "" for any
	Event  string `json:"event"`
}

// Relayed removes an event from the outbox after its delivery to all followers. It returns
// ErrServer, and the event stays, in another epoch than At's.
func (l *Ledger) Relayed(ctx context.Context, e Event) error {
	word, err := relayedScript.call(ctx, l.client, l.tag(e.Upstream), "", relayedArgs{l.known, e.record}).Text()
	if err == nil && word == "server" {
		return ErrServer
	}
	return redisconn.Classify("empty the outbox", err)
}

// Kept reads the output and the payload that are kept with a run's row: the last bytes of the
// output, and the payload of a run by hand. Of a run that goes on there is only the last Tail.
func (l *Ledger) Kept(ctx context.Context, job, run string) (output, payload []byte, err error) {
	got, err := l.client.HMGet(ctx, l.keys[l.Partition(job)].kept, run, "p:"+run).Result()
	if err != nil {
		return nil, nil, l.explain(ctx, "read run "+run, err)
	}
	if len(got) != 2 {
		return nil, nil, errors.New("read run " + run + ": the answer has not two parts")
	}
	return []byte(text(got[0])), []byte(text(got[1])), nil
}
