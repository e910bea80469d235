package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// bootstrapWithin is how long Bootstrap waits for a master, in each of its two rounds.
	bootstrapWithin = time.Second

	// clocksApart is how far the masters' clocks may be apart at Bootstrap: as far
	// as tokens may be ahead of a master's clock.
	clocksApart = time.Hour
)

// Bootstrap lets masters vote when fewer than a majority can: at a first start,
// and after a majority has lost its state, by FLUSHALL or by restarts within a
// few minutes of each other. Tokens go on above all that the masters remember,
// and a minute ahead of the median of their clocks.
//
// While a majority votes it does nothing. Masters that all answer and know of nothing
// vote at once: there it is the operator's word that no lock is in use that was granted
// before; wait for MaxTTL if you cannot tell. When any of them votes, knows of
// a token, or gives no answer, the others vote when they have been known to have lost
// their state for 1.1 times the longest MaxTTL and a second. Until then the error says
// how long that is: call Bootstrap again.
//
// The error wraps locking.ErrUnreachable also when so many masters gave no answer
// that a majority may be voting. It is an *locking.InputError when the masters'
// clocks are more than an hour apart. After either it may be called again.
func Bootstrap(ctx context.Context, clients []redis.UniversalClient, cfg Config) error {
	d, err := NewDriver(clients, cfg)
	if err != nil {
		return err
	}
	d.cfg.MasterTimeout = bootstrapWithin
	nodes, errs := d.look(ctx)
	s := survey(nodes)
	if twice := d.sameServer(s.runIDs); twice != nil {
		return twice
	}
	want := majority(len(nodes))
	switch {
	case s.voting >= want:
		return nil
	case s.voting+s.silent >= want:
		vote := ""
		if s.voting > 0 {
			vote = fmt.Sprintf("%d vote, ", s.voting)
		}
		return fmt.Errorf("bootstrap of %d redis masters: %w: %s%d gave no answer and may vote; reach them, or put new servers in their place: %w",
			len(nodes), locking.ErrUnreachable, vote, s.silent, silence(ctx, errs))
	}
	clock, err := d.commonClock(nodes)
	if err != nil {
		return err
	}
	longest := max(s.longest, d.cfg.MaxTTL)
	need := time.Duration(-1)
	if !s.first() {
		need = quarantine(longest)
	}
	restored, more := d.restoreAll(ctx, nodes, max(s.largest, clock)+redisconn.TokenGuardMicros, need, longest)
	if voting := s.voting + restored; voting < want {
		vote := "none votes"
		if voting > 0 {
			vote = fmt.Sprintf("%d of them vote", voting)
		}
		return fmt.Errorf("bootstrap of %d redis masters: %w: %s, and %d are needed: %w",
			len(nodes), locking.ErrUnreachable, vote, want, silence(ctx, append(errs, more...)))
	}
	return nil
}

// found is what masters know, all of them together.
type found struct {
	voting, silent int
	largest        locking.Token
	longest        time.Duration
	runIDs         []string // by master; "" for those that gave no answer
}

func survey(nodes []*node) found {
	f := found{runIDs: make([]string, len(nodes))}
	for i, n := range nodes {
		if n == nil {
			f.silent++
			continue
		}
		f.runIDs[i] = n.runID
		f.largest, f.longest = max(f.largest, n.largest), max(f.longest, n.longest)
		if n.votes {
			f.voting++
		}
	}
	return f
}

// first reports whether there is no trace of an earlier life. A master that gives no
// answer may have one: what the others have lost may still be held.
func (f found) first() bool { return f.voting == 0 && f.largest == 0 && f.silent == 0 }

// commonClock returns the median of the masters' clocks, in microseconds. Tokens
// go on from there, and do not come back from a clock that was years ahead: so it
// refuses clocks that cannot all be meant.
func (d *Driver) commonClock(nodes []*node) (int64, error) {
	var order []int // masters that answered, by their clocks
	for i, n := range nodes {
		if n != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(nodes[a].clock, nodes[b].clock) })
	first, last := order[0], order[len(order)-1]
	middle := nodes[order[len(order)/2]].clock
	apart := nodes[last].clock - nodes[first].clock
	if apart <= clocksApart.Microseconds() {
		return middle, nil
	}
	odd := first
	if nodes[last].clock-middle > middle-nodes[first].clock {
		odd = last
	}
	return 0, refuse("", fmt.Sprintf("masters[%d]", odd), "(%s) seems to have a wrong clock: those of masters[%d] and masters[%d] are %s apart; set it, then call Bootstrap again",
		d.masters[odd].addr, first, last, time.Duration(apart)*time.Microsecond)
}

// restoreAll lets those masters vote that answered and do not, and counts them.
func (d *Driver) restoreAll(ctx context.Context, nodes []*node, floor locking.Token, need, longest time.Duration) (restored int, errs []error) {
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, i int, m *master) (struct{}, error) {
		if nodes[i] == nil || nodes[i].votes {
			return struct{}{}, errNotAsked
		}
		return struct{}{}, d.restore(ctx, m, nodes[i].runID, floor, need, longest)
	})
	gather(ctx, answers, len(d.masters), d.cfg.MasterTimeout, func(a answer[struct{}]) bool {
		switch {
		case a.err == nil:
			restored++
		case !errors.Is(a.err, errNotAsked):
			errs = append(errs, a.err)
		}
		return false
	})
	return restored, errs
}

// node is what a master knows of itself.
type node struct {
	runID   string
	votes   bool
	largest locking.Token
	clock   int64         // microseconds
	longest time.Duration // that any client may ask for
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
	var votes, longest int64
	var largest, clock string
	if !lockredis.Scan(reply, &n.runID, &votes, &largest, &clock, &longest) {
		return nil, fmt.Errorf("unexpected reply %v", reply)
	}
	n.votes, n.longest = votes == 1, ms(longest)
	var err, err2 error
	n.largest, err = strconv.ParseInt(largest, 10, 64)
	n.clock, err2 = strconv.ParseInt(clock, 10, 64)
	return &n, errors.Join(err, err2)
}

// sameServer returns an error when two masters have one server id: their two votes
// are one. It may pass, when a name led to another server for a moment.
func (d *Driver) sameServer(runIDs []string) error {
	first := make(map[string]int)
	for i, id := range runIDs {
		if id == "" {
			continue
		}
		if at, again := first[id]; again {
			return refuse("", fmt.Sprintf("masters[%d]", i), "is the same server as masters[%d] (%s and %s, server id %s); use servers that fail independently",
				at, d.masters[i].addr, d.masters[at].addr, id)
		}
		first[id] = i
	}
	return nil
}
