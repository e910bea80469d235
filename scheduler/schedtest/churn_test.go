//go:build !race

package schedtest

import (
	"context"
	"crypto/sha1" // Redis names scripts by it
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

var (
	churnSeed  = flag.Uint64("churn.seed", 0, "play this seed only and tell its story")
	churnSeeds = flag.Int("churn.seeds", defaultChurn, "how many seeds TestChurn plays")
	churnFirst = flag.Uint64("churn.first", 1, "the first of them")
)

// A churn is a cluster of 200 jobs that tick each second, whose nodes come and go.
type churn struct {
	plan  Plan
	kind  string
	flaps []Fault         // of beats
	at    []time.Duration // of all changes

	joined, out int // nodes that came later; that were out of the roster though they lived
}

// The kinds of a churn: two fifths of the seeds are rough, a fifth each of the others.
const (
	still   = "still"   // nobody comes or goes
	joining = "joining" // nodes join
	orderly = "orderly" // and leave, as they do when they are told to
	rough   = "rough"   // and are killed, freeze, or their beats are lost
)

const (
	churnFrom, churnUntil = 4 * time.Second, 18 * time.Second
	// churnEffect is how long after a change a tick counts as one amid changes: a dead node's place in the
	// roster lasts 5 s, and its leases 3 s and what it takes to reap them.
	churnEffect = 6 * time.Second
)

// beforeBeat is when a node's beat reaches Redis. Nothing else of the node is hit there.
const beforeBeat Point = "before beat"

func churnOf(seed uint64) *churn {
	d := &dice{rand.New(rand.NewPCG(seed, 0xc4a2))}
	ch := &churn{kind: []string{rough, orderly, rough, joining, still}[seed%5]}
	ch.plan = Plan{Seed: seed, Nodes: 4 + d.IntN(3), Heal: churnUntil, For: 30 * time.Second}
	for i := range 200 {
		work := 5 * time.Millisecond
		if i%20 == 0 {
			work = 600 * time.Millisecond // amid something, when its node goes
		}
		ch.plan.Jobs = append(ch.plan.Jobs, jobs.Job{Name: fmt.Sprintf("job-%03d", i), Schedule: "* * * * * *", TTL: 3 * time.Second, Func: worksFor(work)})
	}
	ch.plan.last = excuseNoFlap
	if ch.kind == still {
		return ch
	}
	for at := churnFrom; at < churnUntil-time.Second; at += d.between(700*time.Millisecond, 3*time.Second) {
		ch.at = append(ch.at, at)
		ch.change(d, at)
	}
	return ch
}

// change lets one node come or go.
func (ch *churn) change(d *dice, at time.Duration) {
	node, kinds := string(rune('a'+d.IntN(ch.plan.Nodes))), map[string]int{joining: 1, orderly: 2, rough: 7}[ch.kind]
	f := Fault{Node: node, When: at, For: d.between(time.Second, 7*time.Second)}
	switch d.IntN(kinds) {
	case 0:
		ch.plan.acts = append(ch.plan.acts, act{at, ch.join})
		return
	case 1:
		f.Do = Drain // and another one joins, after that
		ch.at = append(ch.at, at+f.For)
	case 2:
		f.Do = Crash
	case 3:
		f.Do = Pause
	default:
		ch.flap(d, node, at)
		return
	}
	ch.plan.Faults = append(ch.plan.Faults, f)
}

// join brings a node that was not there before.
func (ch *churn) join(c *cluster) {
	s := &seat{name: string(rune('a' + len(c.seats)))}
	c.seats = append(c.seats, s)
	c.plan.Nodes = len(c.seats)
	ch.joined++
	c.start(s)
}

// flap loses some beats of a node in a row: all of the roster's time to live, or nearly. A beat that goes unanswered
// takes two seconds, one that breaks the connection none.
func (ch *churn) flap(d *dice, node string, at time.Duration) {
	f := Fault{Do: DropRequest, At: beforeBeat, Node: node, When: at}
	n := 2 + d.IntN(3)
	if d.IntN(2) == 0 {
		f.Do, n = Reset, 4+d.IntN(6)
	}
	for range n {
		ch.flaps = append(ch.flaps, f)
	}
	ch.at = append(ch.at, at+5*time.Second) // it leaves the roster about then
	ch.plan.acts = append(ch.plan.acts, act{at + 6*time.Second, func(c *cluster) {
		p := c.sitting(node)
		record := c.server.Mini().HGet("{escapement}:roster", p.node.ID())
		if !p.dead && !p.leaving && p.died.IsZero() && !p.stopped() && time.Since(p.born) > 7*time.Second && record == "" {
			ch.out++
		}
	}})
}

// excuseNoFlap has the verifier judge as if no beat had been lost: that excuses nothing.
func excuseNoFlap(c *cluster) {
	c.disturbed = slices.DeleteFunc(c.disturbed, func(d verify.Disturbance) bool {
		return strings.HasPrefix(d.What, string(DropRequest)) || strings.HasPrefix(d.What, string(Reset))
	})
}

// play is Play for a cluster that knows the roster's beat on the wire as well.
func (ch *churn) play(t *testing.T) (r Result) {
	t.Helper()
	source, err := os.ReadFile("../../sharding/beat.lua")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum(source)
	p := ch.plan.withDefaults()
	if err := p.validate(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c := newCluster(p, server)
		c.scripts[hex.EncodeToString(sum[:])] = &script{op: "beat"}
		for _, f := range ch.flaps {
			c.arm(f)
		}
		var report verify.Report
		c.plan.unjudged, c.plan.final = true, func(c *cluster) { report, err = c.churned(t.Context()) }
		var ended error
		if r, ended = c.play(t.Context()); errors.Join(err, ended) != nil {
			t.Fatal(errors.Join(err, ended))
		}
		report.Findings = append(report.Findings, r.Findings...)
		r.Report = report
	})
	return r
}

// churned is verdict for jobs that differ in their names only: what the verifier is told of one it is told of all.
func (c *cluster) churned(ctx context.Context) (verify.Report, error) {
	books, err := c.books(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	names := c.plan.jobNames()
	one := cluster{plan: c.plan, processes: c.processes, settle: c.settle}
	one.plan.Jobs = c.plan.Jobs[:1]
	first, err := one.known()
	if err != nil {
		return verify.Report{}, err
	}
	known := make([]verify.Job, len(names))
	for i, name := range names {
		known[i] = first[0]
		known[i].Name = name
	}
	report := verify.Check(verify.Case{
		Jobs: known, Writes: c.sink.writes, Books: books, Disturbed: c.disturbed, Nodes: c.plan.names(), Read: c.ended, Ended: time.Now(), Within: c.within, Settle: c.settle,
	})
	c.resumed(known)
	return report, nil
}

// amid says whether a tick came due while a change had its effect.
func (ch *churn) amid(since time.Duration) bool {
	return slices.ContainsFunc(ch.at, func(at time.Duration) bool { return since > at-time.Second && since < at+churnEffect })
}
