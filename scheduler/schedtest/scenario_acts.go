package schedtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

// operation is an operator's action at an instant.
type operation struct {
	line int
	when time.Duration
	verb string
	job  string

	reason  string         // pause, cancel
	until   *time.Duration // pause
	at      *time.Duration // trigger
	unique  string         // trigger
	payload string         // trigger
	run     string         // cancel, rerun: the id, else tick
	tick    *time.Duration // cancel, rerun
	shard   *int           // cancel, rerun: of the tick; nil: the tick as a whole
	to      *time.Duration // rewind, backfill

	from     *time.Duration // backfill
	parallel int            // backfill
}

var verbs = []string{"pause", "resume", "trigger", "cancel", "rerun", "rewind", "backfill", "backfill-cancel", "remove"}

var faultWords = map[string]Action{
	"crash": Crash, "drain": Drain, "deploy": Deploy, "suspend": Pause, "cut": Cut, "stop-redis": StopRedis, "empty-redis": EmptyRedis, "flush-redis": FlushRedis,
	"drop-request": DropRequest, "drop-reply": DropReply, "delay": Delay,
}

// at reads: at TIME (FAULT ... | VERB JOB ...).
func (r *reader) at(o *options) error {
	when := o.span()
	word := o.next("what happens")
	if do, known := faultWords[word]; known {
		return r.fault(do, Fault{When: when}, o)
	}
	if !slices.Contains(verbs, word) {
		return fmt.Errorf("%q cannot be done; what can: %s, and the faults crash, drain, deploy, suspend, cut, stop-redis, empty-redis, flush-redis", word, strings.Join(verbs, ", "))
	}
	op := operation{line: r.no, when: when, verb: word, job: o.next("a job")}
	switch word {
	case "pause":
		op.reason = o.next("a reason")
		op.until = o.instant("until")
	case "trigger":
		op.at = o.instant("at")
		o.text("unique", &op.unique)
		o.text("payload", &op.payload)
	case "cancel", "rerun":
		o.text("run", &op.run)
		var shard string
		if o.text("shard", &shard) {
			n, err := strconv.Atoi(shard)
			if err != nil {
				return fmt.Errorf("shard=%s: not a number", shard)
			}
			op.shard = &n
		}
		if op.tick = o.instant("tick"); (op.tick == nil) == (op.run == "") {
			return fmt.Errorf("%s needs run=ID or tick=+10s", word)
		}
		if word == "cancel" {
			op.reason = o.next("a reason")
		}
	case "backfill":
		op.parallel = 1
		o.count("parallel", &op.parallel)
		if op.from, op.to = o.instant("from"), o.instant("to"); op.from == nil || op.to == nil {
			return errors.New("backfill needs from=+10s to=+30s")
		}
	case "backfill-cancel":
		op.reason = o.next("a reason")
	case "rewind":
		if op.to = o.instant("to"); op.to == nil {
			return errors.New("rewind needs to=+10s")
		}
	}
	r.s.acts = append(r.s.acts, op)
	return nil
}

// instant takes key=+10s.
func (o *options) instant(key string) *time.Duration {
	var d time.Duration
	if !o.time(key, &d) {
		return nil
	}
	return &d
}

// when reads: when POINT [nth=N] [from=TIME] FAULT ..., with points such as after-claim.
func (r *reader) when(o *options) error {
	f := Fault{At: Point(strings.ReplaceAll(o.next("a point"), "-", " "))}
	o.count("nth", &f.Nth)
	o.time("from", &f.When)
	word := o.next("a fault")
	do, known := faultWords[word]
	if !known {
		return fmt.Errorf("there is no fault %q", word)
	}
	return r.fault(do, f, o)
}

// fault reads: [NODE|all] [for=TIME] [version=N].
func (r *reader) fault(do Action, f Fault, o *options) error {
	f.Do = do
	o.time("for", &f.For)
	o.count("version", &f.Version)
	if f.ofRedis() || f.At != "" && len(o.words) == 0 {
		r.s.plan.Faults = append(r.s.plan.Faults, f)
		return nil
	}
	names := []string{o.next("a node, or all")}
	if names[0] == "all" {
		names = r.s.plan.names()
	}
	for _, name := range names {
		f.Node = name
		r.s.plan.Faults = append(r.s.plan.Faults, f)
	}
	return nil
}

// played is one play of a scenario and its results.
type played struct {
	scenario *timetable
	said     []string          // answers to operators, where they are worth a line
	hands    int               // runs requested by hand so far: hand-1, hand-2, ...
	unique   map[string]string // their ids by key
	got      []string          // the history
	broken   []string          // violations of rules that hold in every scenario
	result   Result
}

// acts returns the operations in the form of the cluster's plan.
func (p *played) acts() []act {
	var all []act
	for _, o := range p.scenario.acts {
		all = append(all, act{o.when, func(c *cluster) {
			answer := "Redis is away"
			if c.redis.up {
				err := c.beside(func(l *ledger.Ledger, i *ops.Client) (err error) {
					answer, err = p.operate(c, l, i, o)
					return err
				})
				answer = join(answer, wordOf(err))
			}
			c.note("hand", "%s %s: %s", o.verb, o.job, answer)
			if answer != "" {
				p.said = append(p.said, fmt.Sprintf("at %s %s %s: %s", o.when, o.verb, o.job, answer))
			}
		}})
	}
	return all
}

// operate carries out an operation as an operator's tool does.
func (p *played) operate(c *cluster, l *ledger.Ledger, i *ops.Client, o operation) (answer string, err error) {
	since := func(d *time.Duration) (at time.Time) {
		if d != nil {
			at = c.began.Add(*d)
		}
		return at
	}
	switch o.verb {
	case "pause":
		err = c.pause(i, o.job, ops.PauseOptions{Author: "ops", Reason: o.reason, Until: since(o.until)})
	case "resume":
		err = c.resume(i, o.job)
	case "trigger":
		return p.trigger(c, l, o, since(o.at))
	case "cancel", "rerun":
		var run string
		if run, err = p.find(c, l, o); err != nil {
			return "", err
		}
		if o.verb == "rerun" {
			_, err = c.rerun(l, o.job, run)
			return "", err
		}
		var word ledger.Status
		word, err = c.cancel(l, o.job, run, o.reason)
		return string(word), err
	case "rewind":
		err = c.rewind(i, o.job, since(o.to))
	case "backfill":
		err = c.backfill(i, o.job, ops.BackfillOptions{From: since(o.from), To: since(o.to), Parallel: o.parallel, Author: "ops"})
	case "backfill-cancel":
		err = c.cancelBackfill(l, o.job, o.reason)
	default:
		err = c.remove(i, o.job)
	}
	return "", err
}

// trigger requests a run by hand, under a counted id.
func (p *played) trigger(c *cluster, l *ledger.Ledger, o operation, at time.Time) (string, error) {
	p.hands++
	t := operate.TriggerRequest{Run: fmt.Sprint("hand-", p.hands), Payload: []byte(o.payload), Unique: o.unique}
	if !at.IsZero() {
		t.At = at.UnixMilli()
	}
	id, err := c.trigger(l, o.job, t)
	if o.unique == "" || err != nil {
		return "", err
	}
	before := p.unique[o.unique]
	p.unique[o.unique] = id
	if before == id {
		return "the same run", nil
	}
	return "", nil
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// means reports whether an operation is about a tick or a shard: of a sharded tick it names a
// shard, or means the whole.
func (o operation) means(whole bool, shard, shards int) bool {
	if o.shard == nil {
		return whole || shards < 2
	}
	return !whole && shards > 1 && *o.shard == shard
}

// find returns the id of the run that an operation means: of a tick, or of a shard of it, the
// latest attempt.
func (p *played) find(c *cluster, l *ledger.Ledger, o operation) (string, error) {
	if o.run != "" {
		return o.run, nil
	}
	ctx, tick := context.Background(), c.began.Add(*o.tick).UnixMilli()
	open, err := query.InFlight(ctx, l, o.job)
	if err != nil {
		return "", err
	}
	rows, _, err := query.History(ctx, l, []string{o.job})
	if err != nil {
		return "", err
	}
	id, attempt := "", 0
	for _, r := range rows[o.job] {
		if r.Tick == tick && r.Run != "" && r.Attempt >= attempt && o.means(r.IsTick, r.Shard, r.Shards) {
			id, attempt = r.Run, r.Attempt
		}
	}
	for _, r := range open {
		if r.Job == o.job && r.Tick == tick && r.Attempt >= attempt && o.means(r.IsOpenTick, r.Shard, r.Shards) {
			id, attempt = r.ID, r.Attempt
		}
	}
	if id == "" {
		return "", errors.New("no run of that tick")
	}
	return id, nil
}
