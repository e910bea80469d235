package agenda

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSuspension goes through the states: each fault doubles the pause, a run that begins makes the
// next one short, and a minute without a fault ends the trouble.
func TestSuspension(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files := errors.New("too many open files")
		s := NewSlots(2)
		is := func(taken, told bool, words string) {
			t.Helper()
			err := s.Err()
			if s.Full() == taken || (err != nil) != told || told && (!strings.Contains(err.Error(), words) || !errors.Is(err, files)) {
				t.Errorf("full %t, trouble %v; want full %t, %q", s.Full(), err, !taken, words)
			}
		}
		pause := func(want time.Duration) {
			t.Helper()
			if got := s.Suspend(files, time.Now()); got != want {
				t.Errorf("a pause of %s, want %s", got, want)
			}
		}
		is(true, false, "")
		began := time.Now()
		pause(time.Second)
		pause(0) // a run that was granted before
		is(false, true, "first at 2000-01-01T00:00:00Z: too many open files; no run is taken for another 1s")
		time.Sleep(time.Second)
		is(true, true, "the next run shows whether it can")
		for _, seconds := range []int{2, 4, 8, 16, 32, 60, 60} {
			d := time.Duration(seconds) * time.Second
			pause(d)
			is(false, true, "")
			time.Sleep(d)
		}
		if s.Began(began) {
			t.Error("a run from before the pause proves something")
		}
		if !s.Began(time.Now()) || s.Began(time.Now()) {
			t.Error("the first run that begins is not the first one, or the second one is")
		}
		is(true, true, "the last run has begun well")
		pause(time.Second)
		time.Sleep(time.Second + provenAfter)
		is(true, true, "")
		time.Sleep(time.Second)
		is(true, false, "")
		if s.Began(time.Now()) {
			t.Error("a run of a well machine ends a pause")
		}
		pause(time.Second)
		is(false, true, "first at 2000-01-01T00:04:05Z")
	})
}
