package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// sickness is a master's word that it has lost its state.
type sickness struct {
	runID string
	known time.Duration // for how long that was known when it said so
}

type sickMaster struct {
	master *master
	sickness
}

// hear notes what an answer says of the master's state.
func (d *Driver) hear(m *master, p promise) {
	if p.code != codeAmnesiac {
		m.sick.Store(nil)
		return
	}
	if was := m.sick.Swap(&sickness{p.runID, p.lost}); was == nil || was.runID != p.runID {
		d.cfg.Logger.Warn("a redis master has lost its state and does not vote until it is repaired",
			"master", m.addr, "run_id", p.runID, "empty", p.empty)
	}
}

func (d *Driver) sickMasters() []sickMaster {
	var out []sickMaster
	for _, m := range d.masters {
		if s := m.sick.Load(); s != nil {
			out = append(out, sickMaster{m, *s})
		}
	}
	return out
}

// repairFloor returns a token that is not below any that was granted by now, and
// the longest ttl of all clients: a majority that votes has seen both.
func repairFloor(promises []promise) (floor locking.Token, longest time.Duration) {
	for _, p := range promises {
		floor, longest = max(floor, p.largest), max(longest, p.longest)
	}
	return floor, longest
}

// repairSick lets masters vote again, in the background, after an acquisition
// that succeeded without them. They said that they have lost their state before
// it began, and long enough ago: so all that was under way when they lost it is
// over, and what it left is known to the quorum whose answers came since.
func (d *Driver) repairSick(sick []sickMaster, quorum []promise) {
	floor, longest := repairFloor(quorum)
	for _, s := range sick {
		m := s.master
		if s.known < quarantine(longest) || !m.repair.CompareAndSwap(false, true) {
			continue
		}
		if !m.enter() {
			m.repair.Store(false)
			continue
		}
		d.calls.Go(func() {
			defer m.leave()
			defer m.repair.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), d.cfg.MasterTimeout)
			defer cancel()
			if err := d.restore(ctx, m, s.runID, floor, quarantine(longest), longest); err != nil {
				d.cfg.Logger.Warn("a redis master could not be repaired; the next acquisition tries again", "master", m.addr, "error", err)
			}
		})
	}
}

// restore lets one master vote. A negative need waits for nothing.
func (d *Driver) restore(ctx context.Context, m *master, runID string, floor locking.Token, need, longest time.Duration) error {
	needMS := int64(-1)
	if need >= 0 {
		needMS = millis(need)
	}
	code, err := repairScript.Run(ctx, m.client, []string{nodeKey(d.cfg.Namespace)}, runID, floor, needMS, millis(longest)).Int()
	switch {
	case err != nil:
		return m.explain("repair", err)
	case code != codeYes:
		return fmt.Errorf("repair redis %s: %w: it was restarted, or it is too early (%d)", m.addr, locking.ErrUnreachable, code)
	}
	m.sick.Store(nil)
	d.cfg.Logger.Info("a redis master votes", "master", m.addr, "run_id", runID)
	return nil
}

// bootstrapWithin is how long Bootstrap waits for a master.
const bootstrapWithin = time.Second

// Bootstrap lets masters vote when fewer than a majority can: at a first start,
// and after a majority has lost its state, by FLUSHALL or by restarts within a
// few minutes of each other. It is the operator's word that no lock that was
// granted before is in use: wait for MaxTTL if you cannot tell. Tokens go on
// above all that the masters remember, and a minute ahead of their clocks.
//
// While a majority votes it does nothing, so a program that sets up its own
// masters may call it at each start. The error wraps locking.ErrUnreachable when
// fewer than a majority of the masters answered; then it may be called again.
func Bootstrap(ctx context.Context, clients []redis.UniversalClient, cfg Config) error {
	d, err := NewDriver(clients, cfg)
	if err != nil {
		return err
	}
	d.cfg.MasterTimeout = bootstrapWithin
	nodes, errs := d.look(ctx)
	voting, floor := 0, locking.Token(0)
	runIDs := make([]string, len(nodes))
	for i, n := range nodes {
		if n == nil {
			continue
		}
		runIDs[i] = n.runID
		floor = max(floor, n.largest, n.clock)
		if n.votes {
			voting++
		}
	}
	if twice := d.sameServer(runIDs); twice != nil {
		return twice
	}
	if voting >= majority(len(nodes)) {
		return nil
	}
	if answered := len(nodes) - missing(nodes); answered >= majority(len(nodes)) { // else a few are of no use
		restored, more := d.restoreAll(ctx, nodes, floor+redisconn.TokenGuardMicros)
		voting, errs = voting+restored, append(errs, more...)
	}
	if voting < majority(len(nodes)) {
		return fmt.Errorf("bootstrap of %d redis masters: %w: %d vote; want %d: %w",
			len(nodes), locking.ErrUnreachable, voting, majority(len(nodes)), silence(ctx, errs))
	}
	return nil
}

// restoreAll lets those masters vote that answered and do not, and counts them.
func (d *Driver) restoreAll(ctx context.Context, nodes []*node, floor locking.Token) (restored int, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, bootstrapWithin)
	defer cancel()
	for i, n := range nodes {
		if n == nil || n.votes {
			continue
		}
		if err := d.restore(ctx, d.masters[i], n.runID, floor, -1, d.cfg.MaxTTL); err != nil {
			errs = append(errs, err)
			continue
		}
		restored++
	}
	return restored, errs
}

func missing(nodes []*node) (n int) {
	for _, node := range nodes {
		if node == nil {
			n++
		}
	}
	return n
}

// node is what a master knows of itself.
type node struct {
	runID   string
	votes   bool
	largest locking.Token
	clock   int64 // microseconds
}

// look asks all masters for what they know of themselves; nil for those that
// gave no answer.
func (d *Driver) look(ctx context.Context) ([]*node, []error) {
	nodes := make([]*node, len(d.masters))
	var errs []error
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (*node, error) {
		reply, err := nodeScript.Run(ctx, m.client, []string{nodeKey(d.cfg.Namespace)}).Slice()
		if err != nil {
			return nil, m.explain("look", err)
		}
		return readNode(reply)
	})
	gather(ctx, answers, len(d.masters), d.cfg.MasterTimeout, func(a answer[*node]) bool {
		nodes[a.master] = a.value
		if a.err != nil {
			errs = append(errs, a.err)
		}
		return false
	})
	return nodes, errs
}

func readNode(reply []any) (*node, error) {
	var n node
	var votes int64
	var largest, clock string
	if !redisconn.Scan(reply, &n.runID, &votes, &largest, &clock) {
		return nil, fmt.Errorf("unexpected reply %v", reply)
	}
	n.votes = votes == 1
	var err, err2 error
	n.largest, err = strconv.ParseInt(largest, 10, 64)
	n.clock, err2 = strconv.ParseInt(clock, 10, 64)
	return &n, errors.Join(err, err2)
}

// sameServer returns an error when two masters have one run_id, and refuses all
// later calls with it: their two votes are one.
func (d *Driver) sameServer(runIDs []string) error {
	first := make(map[string]int)
	for i, id := range runIDs {
		if id == "" {
			continue
		}
		if at, again := first[id]; again {
			err := refuse("", fmt.Sprintf("masters[%d]", i), "is the same server as masters[%d] (%s and %s, run_id %s); use servers that fail independently",
				at, d.masters[i].addr, d.masters[at].addr, id)
			d.twice.Store(err)
			return err
		}
		first[id] = i
	}
	return nil
}
