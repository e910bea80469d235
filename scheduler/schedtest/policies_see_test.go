package schedtest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// tale is what one play showed: what passed on the wire, what functions and operators did, and what the
// ledger had in the end. Nothing in it was worked out by the ledger's own audit.
type tale struct {
	seed uint64
	plan Plan

	mu    sync.Mutex // guards calls: functions write them, each on its own
	calls []*called

	// From the wire, in order.
	grants  []given
	opens   []given // ticks of sharded jobs, by the claims that opened them
	ends    []ending
	follows []followed
	told    []telling

	// From the operators.
	pauses  []paused
	asked   []asking
	kills   []killed
	again   map[string]bool // ids of attempts that an operator asked for
	rewound map[string]int  // by job
	did     map[string]int

	// At the end.
	broken    []string
	names     []string
	rows      map[string][]ledger.Row
	open      []ledger.Lease
	entries   map[string]ledger.Stored
	events    []ledger.Event
	writes    []verify.Write
	spared    map[string]int
	disturbed []verify.Disturbance
	lives     map[string]*process // by the process's name
	lost      bool                // Redis lost acknowledged writes
	stepped   bool                // Redis' clock was stepped
	read      int64               // when the books were read, by Redis' clock, ms
	now       time.Time           // and by the true time
}

// given is a grant, seen at the instant at which it was made.
type given struct {
	at            time.Time
	ms            int64 // by Redis' clock
	job, run      string
	tick          int64
	attempt       int
	token         int64
	trigger, mode string
	request       string // of a run by hand
	pending       bool
	passes        string
	process       *process
	shard, shards int    // shards: 1 for what is no shard
	of            string // the open tick that it is a shard of
}

// ending is a run that ended, or was handed back.
type ending struct {
	at       time.Time
	ms, free int64 // when it was recorded, and from when on the job was free, by Redis' clock
	job, run string
	how      string // settled, reaped, returned
	outcome  string
}

// followed is a job that asked to be told of another's ticks.
type followed struct {
	at            time.Time
	upstream, job string
}

// telling is word of a tick that reached a job which follows.
type telling struct {
	ms         int64 // by Redis' clock: when it was brought, or known if that was before
	job        string
	tick, last int64
	outcome    string
}

// argv are the arguments of a script behind its keys.
func argv(m *message) []string {
	args := m.commands[0]
	keys, err := strconv.Atoi(args[2])
	if err != nil || len(args) < 3+keys {
		return nil
	}
	return args[3+keys:]
}

func whole64(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// see writes down what passed on the wire.
func (t *tale) see(c *cluster, m *message, words []string) {
	now, ms := time.Now(), c.redisTime().UnixMilli()
	item := func(head, stride int, each func(word string, a []string)) {
		for i, a := 0, argv(m); head+(i+1)*stride <= len(a) && i < len(words); i++ {
			each(words[i], a[head+i*stride:])
		}
	}
	switch m.op {
	case opClaim:
		t.claimed(c, m, words)
	case opSettle:
		item(3, 11, func(word string, a []string) {
			if word == "settled" {
				t.end(ending{at: now, ms: ms, free: ms, job: a[0], run: a[1], how: word, outcome: a[3]})
			}
		})
	case "reap":
		item(5, 4, func(word string, a []string) {
			if word == "reaped" {
				t.end(ending{at: now, ms: ms, free: ms, job: a[0], run: a[1], how: word, outcome: "abandoned"})
			}
		})
	case opUnclaim:
		item(2, 4, func(word string, a []string) {
			if word == "returned" {
				t.end(ending{at: now, ms: ms, free: ms, job: a[0], run: a[1], how: word})
			}
		})
	case "follow":
		if a := argv(m); len(a) == 4 && len(words) == 1 && words[0] == "done" && a[2] == "1" {
			t.follows = append(t.follows, followed{now, a[0], a[1]})
		}
	case "relay":
		if a := argv(m); len(a) > 9 && len(words) == 1 && words[0] == "relayed" {
			t.told = append(t.told, telling{min(ms, whole64(a[9])), a[0], whole64(a[5]), whole64(a[6]), a[8]})
		}
	}
}

// end notes the first end of a run.
func (t *tale) end(e ending) {
	for i := range t.ends {
		if t.ends[i].run == e.run {
			return
		}
	}
	t.ends = append(t.ends, e)
}

func (t *tale) claimed(c *cluster, m *message, words []string) {
	args := m.commands[0]
	for i, at := range claims(args) {
		if (i+1)*claimStride > len(words) {
			continue
		}
		a := args[at:]
		switch words[i*claimStride] {
		case "granted":
		case "opened":
			t.opened(c, m, a, words[i*claimStride+3])
			continue
		default:
			continue
		}
		g := given{at: time.Now(), ms: c.redisTime().UnixMilli(), job: a[claimJob], run: a[claimRun], mode: a[claimMode], process: m.conn.process, shards: 1}
		g.tick, _ = grantOf(args, i, words)
		g.token, g.attempt, g.passes = whole64(words[i*claimStride+1]), 1, a[8]
		if g.pending = a[0] != "t"; g.pending {
			g.of, g.shard, g.shards = shardOf(words[i*claimStride+3])
			r := strings.Split(words[i*claimStride+3], "|")
			g.attempt, g.trigger, g.request = int(whole64(r[7])), r[14], r[15]
		} else {
			g.trigger = a[11]
			if n := whole64(words[i*claimStride+3]); n > 0 {
				g.attempt = int(n)
			}
		}
		t.grant(g)
	}
}

// grant notes the first grant of a run with a token: asked again, the same grant is given.
func (t *tale) grant(g given) {
	for i := range t.grants {
		if t.grants[i].run == g.run && t.grants[i].token == g.token {
			return
		}
	}
	t.grants = append(t.grants, g)
}

// look is when the time is up and nothing was stopped yet.
func (t *tale) look(c *cluster) {
	if t.plan.Heal == 0 || !c.redis.up {
		return
	}
	t.idle(c)
}

// close reads what the ledger has in the end.
func (t *tale) close(c *cluster) {
	t.names, t.writes, t.spared, t.disturbed = t.plan.jobNames(), c.sink.writes, c.spared, c.disturbed
	t.lost, t.stepped = !c.redis.lost.IsZero(), len(c.redis.steps) > 0
	t.read, t.now = c.redisTime().UnixMilli(), time.Now()
	t.lives = make(map[string]*process)
	for _, p := range c.processes {
		t.lives[p.name] = p
	}
	if err := t.books(c); t.lost && errors.Is(err, ledger.ErrNoNamespace) {
		return // it was emptied, and nobody came to write since
	} else if err != nil {
		t.broken = append(t.broken, "the books cannot be read: "+err.Error())
		return
	}
	t.keptFor(c)
	t.closed()
	t.judge()
}

// keptFor: what is kept beside rows belongs to one.
func (t *tale) keptFor(c *cluster) {
	rows := make(map[string]bool)
	for _, name := range t.names {
		for _, r := range t.rows[name] {
			rows[r.Run] = true
		}
	}
	for _, key := range c.server.Mini().Keys() {
		if !strings.HasSuffix(key, "}:kept") {
			continue
		}
		fields, err := c.server.Mini().HKeys(key)
		if err != nil {
			t.blame("%s: %v", key, err)
		}
		for _, field := range fields {
			if !rows[strings.TrimPrefix(field, "p:")] {
				t.blame("%s: %s is kept, and there is no such row", key, field)
			}
		}
	}
}

// books reads rows, runs in flight, entries and events, and has the ledger audit itself.
func (t *tale) books(c *cluster) error {
	client := c.server.Client()
	defer client.Close()
	ctx := context.Background()
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: c.plan.Config.Namespace})
	if err != nil {
		return err
	}
	rows, foreign, err := l.History(ctx, t.names)
	if err != nil {
		return err
	}
	if t.rows = rows; foreign > 0 {
		t.blame("%d rows cannot be read", foreign)
	}
	if t.open, err = l.Open(ctx, t.names...); err != nil {
		return err
	}
	all, err := l.Jobs(ctx)
	if err != nil {
		return err
	}
	t.entries = make(map[string]ledger.Stored)
	for _, s := range all {
		t.entries[s.Job] = s
	}
	found, err := l.NewGaze().Look(ctx, t.read, 0)
	if err != nil {
		return err
	}
	t.events = found.Events
	wrong, err := l.Verify(ctx, "")
	for _, v := range wrong {
		t.blame("audit: %s %s: %s", v.Promise, v.Job, v.What)
	}
	return err
}
