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
	// bootstrapTimeout is how long Bootstrap waits for a master, in each of its two rounds.
	bootstrapTimeout = time.Second

	// maxClockSkew bounds the difference of the masters' clocks at Bootstrap. Tokens may be as far ahead of a
	// master's clock.
	maxClockSkew = time.Hour
)

// Bootstrap lets masters vote when fewer than a majority does: at a first start, and after a majority has lost
// its state, by FLUSHALL or by restarts within a few minutes of each other. While a majority votes it does
// nothing. Tokens go on above all known tokens, and a minute ahead of the median of the masters' clocks.
//
// When all masters answer and none has any state, they vote at once. By calling Bootstrap, the operator then
// states that no earlier lock is in use; wait for MaxTTL before if you cannot tell. When one of them votes, has
// a token or gives no answer, the others vote after their loss has been known for 1.1 times the longest MaxTTL
// and a second. Until then the error says how long that is; call Bootstrap again.
//
// The error wraps locking.ErrUnreachable when masters that may be a voting majority gave no answer, or when it
// is too early. It is an *locking.InputError when the masters' clocks are more than an hour apart. Bootstrap may
// be repeated.
func Bootstrap(ctx context.Context, clients []redis.UniversalClient, cfg Config) error {
	d, err := newDriver(clients, cfg)
	if err != nil {
		return err
	}
	d.cfg.MasterTimeout = bootstrapTimeout
	nodes, errs := d.queryNodes(ctx)
	s := summarize(nodes)
	if twice := d.sameServer(s.runIDs); twice != nil {
		return twice
	}
	want := majority(len(nodes))
	switch {
	case s.voting >= want:
		return nil
	case s.voting+s.unanswered >= want:
		vote := ""
		if s.voting > 0 {
			vote = fmt.Sprintf("%d vote, ", s.voting)
		}
		return fmt.Errorf("bootstrap of %d redis masters: %w: %s%d gave no answer and may vote; make them reachable, or replace them by new servers: %w",
			len(nodes), locking.ErrUnreachable, vote, s.unanswered, reasons(ctx, errs))
	}
	clock, err := d.commonClock(nodes)
	if err != nil {
		return err
	}
	longest := max(s.longest, d.cfg.MaxTTL)
	need := time.Duration(-1)
	if !s.isNew() {
		need = quarantine(longest)
	}
	restored, more := d.restoreAll(ctx, nodes, max(s.largest, clock)+redisconn.TokenGuardMicros, need, longest)
	if voting := s.voting + restored; voting < want {
		vote := "none votes"
		if voting > 0 {
			vote = fmt.Sprintf("%d of them vote", voting)
		}
		return fmt.Errorf("bootstrap of %d redis masters: %w: %s, and %d are needed: %w",
			len(nodes), locking.ErrUnreachable, vote, want, reasons(ctx, append(errs, more...)))
	}
	return nil
}

// summary is the state of all masters together.
type summary struct {
	voting, unanswered int
	largest            locking.Token
	longest            time.Duration
	runIDs             []string // by master; "" without an answer
}

func summarize(nodes []*node) summary {
	f := summary{runIDs: make([]string, len(nodes))}
	for i, n := range nodes {
		if n == nil {
			f.unanswered++
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

// isNew reports whether no master has any state. A master without an answer may have one, and locks that the
// others have lost may still be held.
func (f summary) isNew() bool { return f.voting == 0 && f.largest == 0 && f.unanswered == 0 }

// commonClock returns the median of the masters' clocks, in microseconds. Tokens go on from there, and never
// decrease, so it refuses clocks that are far apart.
func (d *driver) commonClock(nodes []*node) (int64, error) {
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
	if apart <= maxClockSkew.Microseconds() {
		return middle, nil
	}
	odd := first
	if nodes[last].clock-middle > middle-nodes[first].clock {
		odd = last
	}
	return 0, refuse("", fmt.Sprintf("masters[%d]", odd), "(%s) seems to have a wrong clock: those of masters[%d] and masters[%d] are %s apart; set it, then call Bootstrap again",
		d.masters[odd].addr, first, last, time.Duration(apart)*time.Microsecond)
}

// restoreAll lets the masters vote that answered and do not vote, and counts them.
func (d *driver) restoreAll(ctx context.Context, nodes []*node, floor locking.Token, need, longest time.Duration) (restored int, errs []error) {
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

// node is a master's own state.
type node struct {
	runID   string
	votes   bool
	largest locking.Token
	clock   int64         // microseconds
	longest time.Duration // the longest ttl of any client
}

// queryNodes returns the state of all masters; nil for those without an answer.
func (d *driver) queryNodes(ctx context.Context) ([]*node, []error) {
	nodes := make([]*node, len(d.masters))
	var errs []error
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (*node, error) {
		reply, err := nodeScript.Run(ctx, m.client, []string{nodeKey(d.cfg.Namespace)}).Slice()
		if err != nil {
			return nil, m.explain("read the state", err)
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

// sameServer returns an error when two masters have the same server id, and so one vote. The error may be
// temporary, when a name resolved to another server.
func (d *driver) sameServer(runIDs []string) error {
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
