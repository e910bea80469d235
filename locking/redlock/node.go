package redlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// rejoinEvery is how often a driver looks whether a master that does not vote may vote again.
const rejoinEvery = time.Second

// node is a master's own state.
type node struct {
	master  *master
	runID   string
	loss    string        // "": it votes
	known   time.Duration // how long the loss has been known
	largest locking.Token
	clock   int64         // microseconds
	longest time.Duration // the longest ttl of any client
}

// node calls node.lua, with its arguments or none.
func (d *driver) node(ctx context.Context, m *master, args ...any) (node, error) {
	reply, err := nodeScript.Run(ctx, m.client, []string{d.cfg.nodeKey()}, args...).Slice()
	if err != nil {
		return node{}, err
	}
	n := node{master: m}
	var known, longest int64
	if !lockredis.Scan(reply, &n.runID, &n.loss, &known, &n.largest, &n.clock, &longest) {
		return n, unexpected(reply)
	}
	n.known, n.longest = redisconn.Duration(known, time.Millisecond), redisconn.Duration(longest, time.Millisecond)
	return n, nil
}

// survey is the state of all masters together.
type survey struct {
	nodes   []node // of the masters that answered
	voting  int
	largest locking.Token
	longest time.Duration
	runIDs  []string // by master; "" without an answer
	errs    []error
}

// survey reads the states of all masters.
func (d *driver) survey(ctx context.Context) survey {
	s := survey{runIDs: make([]string, len(d.masters)), longest: d.cfg.MaxTTL}
	ask(ctx, d, question[node]{
		op: "read the state", timeout: d.cfg.MasterTimeout,
		call: func(ctx context.Context, m *master) (node, error) { return d.node(ctx, m) },
		take: func(a answer[node]) bool {
			if a.err != nil {
				s.errs = append(s.errs, a.err)
				return false
			}
			n := a.value
			s.nodes, s.runIDs[a.master.index] = append(s.nodes, n), n.runID
			s.largest, s.longest = max(s.largest, n.largest), max(s.longest, n.longest)
			if n.loss == "" {
				s.voting++
			}
			return false
		},
	})
	return s
}

// restore lets the masters vote whose losses have been known for need, with tokens above floor. It
// returns how many of them vote now, and an error for each master that does not vote.
func (d *driver) restore(ctx context.Context, nodes []node, need time.Duration, floor locking.Token, longest time.Duration) (voting int, errs []error) {
	var masters []*master
	losses := make(map[*master]string)
	for _, n := range nodes {
		switch {
		case n.loss == "":
		case n.known < need:
			errs = append(errs, fmt.Errorf("redis %s: locks from before its loss may still be held; try again in %s", n.master.addr, need-n.known))
		default:
			masters, losses[n.master] = append(masters, n.master), n.loss
		}
	}
	if len(masters) == 0 {
		return 0, errs
	}
	ask(ctx, d, question[node]{
		op: "restore the vote", masters: masters, timeout: d.cfg.MasterTimeout,
		call: func(ctx context.Context, m *master) (node, error) {
			return d.node(ctx, m, losses[m], floor, lockredis.Millis(longest))
		},
		take: func(a answer[node]) bool {
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case a.value.loss != "":
				errs = append(errs, fmt.Errorf("redis %s has lost its state again", a.master.addr))
			default:
				voting++
				d.cfg.Logger.Info("a redis master votes", "master", a.master.addr, "server", a.value.runID)
			}
			return false
		},
	})
	return voting, errs
}

// noteLoss reports a master that has begun not to vote, and lets it vote again when it may.
func (d *driver) noteLoss(m *master, lost bool, runID string) {
	if was := m.lost.Swap(lost); lost && !was {
		d.cfg.Logger.Warn("a redis master is new, was emptied or was restarted, and does not vote: at a first start call redlock.Bootstrap, else it votes later by itself",
			"master", m.addr, "server", runID)
	}
	if lost {
		d.rejoin(context.Background())
	}
}

// rejoin lets masters vote again whose losses have been known for long enough, while a majority votes.
//
// rejoin reads the states twice. A lock granted before a loss has lapsed at the first answers. Its
// token is stored at the majority that votes at the second answers, because both majorities share a
// master.
func (d *driver) rejoin(ctx context.Context) {
	d.mu.Lock()
	due := time.Since(d.rejoined) >= rejoinEvery
	if due {
		d.rejoined = time.Now()
	}
	d.mu.Unlock()
	if !due {
		return
	}
	before := d.survey(ctx)
	ripe := func(n node) bool { return n.loss != "" && n.known >= quarantine(before.longest) }
	if !slices.ContainsFunc(before.nodes, ripe) {
		return
	}
	now := d.survey(ctx)
	if now.voting < majority(len(d.masters)) {
		return
	}
	longest := max(before.longest, now.longest)
	if voting, errs := d.restore(ctx, before.nodes, quarantine(longest), now.largest, longest); voting == 0 {
		d.cfg.Logger.Warn("a redis master could not be made to vote again; the next acquisition tries it", "error", reason(errs))
	}
}
