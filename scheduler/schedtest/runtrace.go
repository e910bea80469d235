package schedtest

import (
	"slices"
	"strconv"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// stage is how far a run has come.
//
//	pending ─┐        (opening the tick of a sharded job settles its own id: shards are runs by themselves)
//	asked ───┴─ carried out ──► granted ── function called ──► started ── settle carried out ──► settled
type stage uint8

const (
	pending stage = iota // requested by hand, and not claimed yet
	asked
	granted
	started
	settled
)

// runTrace is one run id's way through the cluster, as the wire saw it.
type runTrace struct {
	id      string
	job     string
	process *process // its claimer; nil while it is pending
	stage   stage
	tick    int64     // of its grant, ms
	mode    string    // the overlap policy under which it was granted, its first letter
	token   int64     // of its grant
	at      time.Time // when it was granted first
	whole   string    // a shard's open tick
	request string    // id of the request by hand
	shard   int
	shards  int
	// The outcomes of requests that were never answered: of the claim and of the settle.
	claim, settle unknown
}

// unknown is a request whose outcome the node does not know: it was carried out, or it was not.
type unknown struct{ applied, lost bool }

// runTraces are the runs that a request names, in its order.
func (c *cluster) runTraces(m *message) []*runTrace {
	var all []*runTrace
	switch {
	case m.op == opClaim:
		for _, claim := range wire.Claims(m.commands[0]) {
			all = append(all, c.runs[claim.Run])
		}
	default:
		for _, a := range m.commands[0] {
			if p := c.runs[a]; p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// asked records the runs that a claim names for the first time.
func (c *cluster) asked(m *message) {
	if m.op != opClaim {
		return
	}
	for _, claim := range wire.Claims(m.commands[0]) {
		if tick := claim.Job + " " + claim.Tick; c.askers[tick] == "" {
			c.askers[tick] = m.conn.process.slot.name
		}
		switch r := c.runs[claim.Run]; {
		case r == nil:
			c.runs[claim.Run] = &runTrace{id: claim.Run, job: claim.Job, process: m.conn.process, stage: asked}
		case r.stage == pending:
			r.process, r.stage = m.conn.process, asked
		}
	}
}

const (
	opClaim   = "claim"
	opSettle  = "settle"
	opUnclaim = "unclaim"
)

// carried records Redis' answer before a node receives it. A grant is seen here at the very moment
// it is made, so promise P4 is checked here: no other run may be working under a valid lease.
func (c *cluster) carried(m *message, reply []byte) {
	c.story.fold(m.sum, wire.SumOf([][]string{wire.Bulks(reply)}))
	words := wire.Bulks(reply)
	c.tell(m, "was sent", words)
	runs := c.runTraces(m)
	if m.op == opClaim {
		words = wire.ClaimAnswers(words, len(runs))
	}
	switch m.op {
	case opClaim:
		claims, answers := wire.Claims(m.commands[0]), wire.Answers(words)
		for i, r := range runs[:min(len(runs), len(answers))] {
			switch a := answers[i]; a.Verdict {
			case "granted":
				r.grant(claims[i], a.Record)
				c.granted(r, a.Token)
			case "opened":
				r.stage = settled
				c.opens(a.Record)
			}
		}
	case opSettle:
		for _, r := range runs {
			if !wire.Refused(words) {
				r.stage = settled
			}
		}
	case opUnclaim:
		if !wire.Refused(words) {
			c.handedBack(m.conn.process, runs)
		}
	case opReassert:
		c.reasserted(words)
	default:
	}
	if m.op != "" {
		c.note(m.conn.process.slot.name, "%s", describe(m, words))
	}
	if c.plan.watch != nil {
		c.plan.watch(c, m, words)
	}
}

// grant notes that the run was granted. The tick is in the claim, or in the record of the answer.
func (r *runTrace) grant(claim wire.Claim, record string) {
	r.stage = max(r.stage, granted)
	if r.at.IsZero() {
		r.at = time.Now()
	}
	rec, found := wire.ReadRecord(record)
	if !found {
		rec.Tick = claim.Tick
	}
	r.tick, _ = strconv.ParseInt(rec.Tick, 10, 64)
	r.mode, r.whole, r.shard, r.shards, r.request = claim.Overlap, rec.Of, rec.Shard, rec.Shards, rec.Request
}

// handedBack excuses the tick of a run that was handed back: its delay is no fault of the node that
// will run it. There must be a cause: the process leaves, or a fault hit it, or Redis.
func (c *cluster) handedBack(p *process, runs []*runTrace) {
	from := time.Now().Add(-c.settle)
	cause := p.leaving || slices.ContainsFunc(c.disturbed, func(d audit.Disturbance) bool {
		return d.Job == "" && d.Until.After(from) && (len(d.Nodes) == 0 || slices.Contains(d.Nodes, p.slot.name))
	})
	for _, r := range runs {
		c.seen["run handed back"]++
		if cause {
			c.disturbed = append(c.disturbed, audit.Disturbance{
				Span: audit.Span{From: from, Until: time.Now()}, What: "handed back", Nodes: []string{p.slot.name}, Job: r.job,
			})
		}
	}
}

// granted records a grant, and the runs at work at that instant under a context that has not ended.
// Runs that were granted before Redis lost writes are left out: Redis may have forgotten them.
func (c *cluster) granted(r *runTrace, token string) {
	n, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		c.blame(Harness, r.job, "token %q", token)
	}
	r.token = n
	g := audit.Grant{At: c.redisTime(), Job: r.job, Run: r.id, Tick: r.tick, Token: n, Shard: r.shard, Shards: r.shards, Of: r.whole, Request: r.request, Allowed: r.mode == allowed}
	for id, call := range c.calls {
		other := c.runs[id]
		known := other == nil || c.redis.lost.Before(other.at)
		if call.job == r.job && other != r && call.ctx.Err() == nil && known {
			g.Working = append(g.Working, id)
		}
	}
	slices.Sort(g.Working)
	c.grants = append(c.grants, g)
}

// allowed is how scripts call overlap allow.
const allowed = "a"

// wentBack reports whether Redis' clock was ever set back.
func (c *cluster) wentBack() bool {
	var before time.Duration
	for _, s := range c.redis.steps {
		if s.off < before {
			return true
		}
		before = s.off
	}
	return false
}

// unanswered notes that a request's outcome stays unknown to the node.
func (c *cluster) unanswered(m *message, applied bool) {
	for _, r := range c.runTraces(m) {
		u := r.of(m.op)
		u.lost, u.applied = true, u.applied || applied
	}
}

// answered records that a node receives a reply. The outcome of an earlier unanswered request like
// it is then known.
func (c *cluster) answered(m *message, reply []byte) {
	if len(wire.Bulks(reply)) == 0 {
		return // an error, such as NOSCRIPT
	}
	for _, r := range c.runTraces(m) {
		if u := r.of(m.op); u.lost {
			if u.applied {
				c.seen["unknown outcome found applied"]++
			} else {
				c.seen["unknown outcome found not applied"]++
			}
			*u = unknown{}
		}
	}
}

func (r *runTrace) of(op string) *unknown {
	if op == opSettle {
		return &r.settle
	}
	return &r.claim
}

// failedOver counts the stages of runs at a new start of Redis, which lost writes or did not.
func (c *cluster) failedOver(lossy bool) {
	what := "restart"
	if lossy {
		what = "failover"
	}
	for _, r := range c.runs {
		if r.process == nil || r.process.dead {
			continue
		}
		switch r.stage {
		case asked:
			if r.claim.lost {
				c.seen[what+" between asking and claim"]++
			}
		case granted:
			c.seen[what+" between claim and start"]++
		case started:
			c.seen[what+" between start and settle"]++
		case pending, settled:
		}
	}
}

// Kinds of findings that only the simulation can make.
const (
	// Leftover: records or connections were left after all nodes had stopped in peace.
	Leftover audit.Kind = "LEFTOVER"
	// Harness: the simulation itself could not carry out the plan.
	Harness audit.Kind = "HARNESS"
)

// opReassert is the call by which a node reports records that a new server may lack.
const opReassert = "reassert"

// reasserted counts the reports that a server gets after a loss.
func (c *cluster) reasserted(words []string) {
	for i := 0; i < len(words) && !wire.Refused(words); i += 2 {
		c.seen["asserted: "+words[i]]++
	}
}
