// Package wait is waiting that has an end, and signals that nobody has to wait for.
package wait

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// For waits for d; false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Within says whether done closed before d was over.
func Within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Done is a channel that closes when the group is done.
func Done(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// Backoff is how long to wait before try number try+1: doubling from 50 ms to 1 s, with jitter.
// who is an id that nobody else retries under at the same time, of a node or of a run: so callers
// that failed together do not retry together.
func Backoff(who string, try int) time.Duration {
	d := min(time.Second, 50*time.Millisecond<<min(try, 5))
	return d/2 + Spread(fmt.Sprint(who, " ", try), time.Now(), d/2)
}

// Spread is a duration from 0 to below most that follows from its arguments alone, where others
// would draw a random one: a node must do the same again when it is shown the same again. What
// makes it differ from the next node's is the id in who.
func Spread(who string, at time.Time, most time.Duration) time.Duration {
	return time.Duration(xxhash.Sum64String(fmt.Sprint(who, " ", at.UnixNano())) % uint64(most))
}

// Signal leaves a signal in a channel that holds one.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Drop takes what is in a channel back out, and says whether there was anything.
func Drop[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
