package redlock

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// TestCrowd: however many of one process want one lock, each hears what the masters answer, within one round trip.
func TestCrowd(t *testing.T) {
	const roundTrip = 2 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		d := fakeDriver(t, func(m int, script string) (any, error) {
			time.Sleep(roundTrip)
			if script == "acquire" {
				return reply(m, codeHeld, "7:7:another", 1000), nil
			}
			return int64(1), nil
		})
		begun := time.Now()
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
				_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: fmt.Sprint(i), TTL: time.Second})
				if !errors.Is(err, locking.ErrHeld) {
					t.Errorf("%d: want ErrHeld, got %v", i, err)
				}
			})
		}
		crowd.Wait()
		if spent := time.Since(begun); spent != roundTrip {
			t.Errorf("the last of them was answered after %s; want %s", spent, roundTrip)
		}
		d.Wait()
	})
}
