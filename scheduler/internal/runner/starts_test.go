package runner

import (
	"time"

	"testing"
)

// A run that is granted ahead while its node begins to drain does not take that for its tick: it need not wait, and sees that the node drains (P1).
func TestNoStartBeforeItsTickAtADrain(t *testing.T) {
	s := newStarts(time.Now)
	tick := time.Now().Add(time.Hour).UnixMilli()
	before := s.wait(tick)
	s.end()
	for _, due := range []<-chan struct{}{before, s.wait(tick)} {
		if due == nil {
			t.Fatal("it is taken for due")
		}
		select {
		case <-due:
		default:
			t.Error("it waits on")
		}
	}
	if s.wait(time.Now().Add(-time.Second).UnixMilli()) != nil {
		t.Error("what is due has to wait")
	}
}
