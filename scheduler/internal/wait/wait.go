// Package wait has waits that end, and signals for which no sender waits.
package wait

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// For waits for d. It returns false when ctx ended first.
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

// Within reports whether done was closed before d was over.
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

// Done returns a channel that is closed when the group is done.
func Done(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// Backoff is the wait before try number try+1: it doubles from 50 ms to 1 s, with jitter. who is an
// id that nobody else retries under at the same time, so callers that failed together do not retry
// together.
func Backoff(who string, try int) time.Duration {
	d := min(time.Second, 50*time.Millisecond<<min(try, 5))
	return d/2 + Spread(fmt.Sprint(who, " ", try), time.Now(), d/2)
}

// Spread is a duration from 0 to below most that depends on its arguments alone. It replaces a
// random one, so that a simulated node repeats what it did. The id in who makes nodes differ.
func Spread(who string, at time.Time, most time.Duration) time.Duration {
	return time.Duration(xxhash.Sum64String(fmt.Sprint(who, " ", at.UnixNano())) % uint64(most))
}

// Signal puts a signal into a channel that holds one, unless one is there already.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Drop takes a signal out of a channel and reports whether there was one.
func Drop[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
