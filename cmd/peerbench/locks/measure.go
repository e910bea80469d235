package locks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"
)

func jitter(d time.Duration) time.Duration { return rand.N(d) }

// uncontended takes and gives back a free lock, library after library in short turns, so that other
// work of the machine hits all alike.
func uncontended(ctx context.Context, addr string, o options) error {
	const turn = 100
	open := make([]contender, len(peers))
	took := make([]time.Duration, len(peers))
	for i, p := range peers {
		c, err := p.open(addr)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer c.close()
		open[i] = c
	}
	for done := 0; done < o.pairs; done += turn {
		for i, p := range peers {
			start := time.Now()
			for range turn {
				unlock, err := open[i].lock(ctx, "uncontended-"+strconv.Itoa(i))
				if err == nil {
					err = unlock()
				}
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
			took[i] += time.Since(start)
		}
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "uncontended acquire and release\tmean of %d\tto SET NX PX\n", o.pairs)
	raw := took[1]
	for i, p := range peers {
		fmt.Fprintf(out, "%s\t%s\t%.2f\n", p.name, (took[i] / time.Duration(o.pairs)).Round(100*time.Nanosecond), float64(took[i])/float64(raw))
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// handed has the contenders' measurements of one library.
type handed struct {
	lags   []time.Duration // from before a release to the next holder, when that is another one
	again  int             // turns taken by the contender that had just released
	shares []int
	calls  float64 // commands of clients a turn
	both   int     // times that two held the lock at once
	stuck  int     // contenders still waiting after some seconds without a holder
}

// patience is how long after the end a contender that waits still may.
const patience = 5 * time.Second

func contended(ctx context.Context, addr string, o options) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "hand-over, %d contenders, %s\thand-overs\tto oneself\tp50\tp99\tmost\tcommands a turn\tleast and most turns\ttwo at once\tstuck\n", o.contenders, o.span)
	for _, p := range peers {
		ctx, cancel := context.WithTimeout(ctx, o.span+patience)
		h, err := contend(ctx, p, addr, o)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		slices.Sort(h.lags)
		n := len(h.lags)
		if n == 0 {
			return fmt.Errorf("%s: no hand-over in %s", p.name, o.span)
		}
		at := func(q float64) time.Duration { return h.lags[min(int(q*float64(n)), n-1)].Round(10 * time.Microsecond) }
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%s\t%s\t%.1f\t%d %d\t%d\t%d\n", p.name, n, h.again, at(.5), at(.99), at(1), h.calls,
			slices.Min(h.shares), slices.Max(h.shares), h.both, h.stuck)
	}
	return out.Flush()
}

// contest is the state of a hand-over measurement among the contenders of one library.
type contest struct {
	name string
	work time.Duration

	mu     sync.Mutex
	seen   handed
	freed  time.Time
	inside int
	last   int // the last holder
}

// contend lets them take turns for a while. All are in one process, so that one
// clock measures them.
func contend(ctx context.Context, p peer, addr string, o options) (handed, error) {
	c := &contest{name: "contended-" + p.name, work: o.work, last: -1, seen: handed{shares: make([]int, o.contenders)}}
	before := sent.Load()
	end := time.Now().Add(o.span)
	errs := make(chan error, o.contenders)
	var wg sync.WaitGroup
	for i := range o.contenders {
		who, err := p.open(addr)
		if err != nil {
			return c.seen, err
		}
		defer who.close()
		wg.Go(func() {
			for time.Now().Before(end) {
				err := c.turn(ctx, who, i)
				if ctx.Err() != nil {
					c.mu.Lock()
					c.seen.stuck++
					c.mu.Unlock()
					return
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	c.seen.calls = float64(sent.Load()-before) / float64(max(len(c.seen.lags)+c.seen.again, 1))
	return c.seen, <-errs // nil when there was none
}

// turn takes the lock once and gives it back.
func (c *contest) turn(ctx context.Context, who contender, i int) error {
	unlock, err := who.lock(ctx, c.name)
	if err != nil {
		return err
	}
	c.enter(i)
	if c.work > 0 {
		<-time.After(c.work)
	}
	c.mu.Lock()
	c.inside--
	c.freed = time.Now()
	c.mu.Unlock()
	return unlock()
}

func (c *contest) enter(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside++; c.inside > 1 {
		c.seen.both++
	}
	switch {
	case c.last == i:
		c.seen.again++
	case !c.freed.IsZero():
		c.seen.lags = append(c.seen.lags, time.Since(c.freed))
	}
	c.last = i
	c.seen.shares[i]++
}
