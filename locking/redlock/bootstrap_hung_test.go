package redlock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A client that ignores its context does not delay Bootstrap.
func TestBootstrapOfHungClient(t *testing.T) {
	for _, hung := range []int{1, 2} { // the call that hangs
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			defer close(hang)
			var calls [3]int
			clients := fakeClients(func(m int, _ string) (any, error) {
				if calls[m]++; m == 0 && calls[m] == hung {
					<-hang
				}
				loss := "1:run" // at the first call; restored by the second one
				if calls[m] > 1 {
					loss = ""
				}
				return []any{fmt.Sprint("run", m), loss, int64(1e9), int64(0), int64(1000), int64(0)}, nil
			})
			done := make(chan error, 1)
			go func() { done <- Bootstrap(t.Context(), clients, Config{}) }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("call %d: %v; two of three are enough", hung, err)
				}
			case <-time.After(2*bootstrapTimeout + time.Millisecond):
				t.Errorf("call %d: Bootstrap still waits for one of three masters", hung)
			}
		})
	}
}
