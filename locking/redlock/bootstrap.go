package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// bootstrapTimeout is how long Bootstrap waits for a master, in each of its two rounds.
	bootstrapTimeout = time.Second

	// maxClockSkew bounds the difference of a master's clock from the median at Bootstrap. Tokens may be as far
	// ahead of a master's clock.
	maxClockSkew = time.Hour
)

// Bootstrap lets masters vote when fewer than a majority does: at a first start, and after a majority has lost
// its state, by FLUSHALL or by restarts within a few minutes of each other. While a majority votes it does
// nothing. Tokens go on above all known tokens, and a minute ahead of the median of the masters' clocks.
//
// When all masters answer and none has any state, they vote at once. By calling Bootstrap, the
// operator then states that no earlier lock is in use; if you cannot be certain, wait for MaxTTL
// before the call. When a master votes, has a token or gives no answer, the remaining masters vote
// after their loss has been known for 1.1 times the longest MaxTTL and a second. Until then
// Bootstrap returns an error with the time left; call Bootstrap again.
//
// The error wraps locking.ErrUnreachable when masters that may be a voting majority gave no answer, or when it
// is too early. It is an *locking.InputError when a master's clock is more than an hour from the median.
// Bootstrap may be repeated.
func Bootstrap(ctx context.Context, clients []redis.UniversalClient, cfg Config) error {
	d, err := newDriver(clients, cfg)
	if err != nil {
		return err
	}
	d.cfg.MasterTimeout = bootstrapTimeout
	s := d.survey(ctx)
	if twice := d.sameServer(s.runIDs); twice != nil {
		return twice
	}
	want, unanswered := majority(len(d.masters)), len(s.errs)
	failed := func(errs []error, format string, args ...any) error {
		return fmt.Errorf("bootstrap of %d redis masters: %w: %s: %w",
			len(d.masters), locking.ErrUnreachable, fmt.Sprintf(format, args...), reason(errs))
	}
	switch {
	case s.voting >= want:
		return nil
	case s.voting+unanswered >= want:
		return failed(s.errs, "%d vote, %d gave no answer and may vote; make them reachable, or replace them by new servers", s.voting, unanswered)
	}
	clock, err := commonClock(s.nodes)
	if err != nil {
		return err
	}
	need := quarantine(s.longest)
	// A master without an answer may have state, and locks that the other masters have lost may
	// still be held.
	if s.voting == 0 && s.largest == 0 && unanswered == 0 {
		need = 0
	}
	restored, errs := d.restore(ctx, s.nodes, need, max(s.largest, clock)+redisconn.TokenGuardMicros, s.longest)
	if voting := s.voting + restored; voting < want {
		return failed(append(s.errs, errs...), "%d vote, and %d are needed", voting, want)
	}
	return nil
}

// commonClock returns the median of the masters' clocks, in microseconds. Tokens go on from there, and never
// decrease, so it refuses clocks that are far apart.
func commonClock(nodes []node) (int64, error) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b node) int { return cmp.Compare(a.clock, b.clock) })
	median := nodes[len(nodes)/2].clock
	for _, n := range nodes {
		if off := redisconn.Duration(n.clock-median, time.Microsecond); off.Abs() > maxClockSkew {
			return 0, refuse("", fmt.Sprintf("masters[%d]", n.master.index), "(%s) seems to have a wrong clock: it is %s from the median of the masters; set it, then call Bootstrap again",
				n.master.addr, off)
		}
	}
	return median, nil
}

// sameServer returns an error when two masters have the same server id, and so one vote. The error may be
// temporary, when a name resolved to another server.
func (d *driver) sameServer(runIDs []string) error {
	for i, id := range runIDs {
		if first := slices.Index(runIDs, id); id != "" && first < i {
			return refuse("", fmt.Sprintf("masters[%d]", i), "is the same server as masters[%d] (%s and %s, server id %s); use servers that fail independently",
				first, d.masters[i].addr, d.masters[first].addr, id)
		}
	}
	return nil
}
