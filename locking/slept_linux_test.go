package locking

import (
	"testing"
	"time"
)

func TestSuspensionIsReadAnew(t *testing.T) {
	var total time.Duration
	s := sleptReader{read: func() time.Duration { total += time.Minute; return total }}
	for _, step := range []struct {
		what  string
		ahead time.Duration
		want  time.Duration
	}{
		{"never read before", 0, time.Minute},
		{"nothing has happened", 0, time.Minute},
		{"the wall clock is slewed", 500 * time.Microsecond, time.Minute},
		{"a suspension", 20 * time.Millisecond, 2 * time.Minute},
		{"nothing since", 20 * time.Millisecond, 2 * time.Minute},
		{"the wall clock was set back, with a suspension maybe", -time.Hour, 3 * time.Minute},
	} {
		if got := s.at(step.ahead); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

// In a bubble time.Now is virtual; the result comes from the kernel.
func TestSleptReadsTheKernel(t *testing.T) {
	machine.last.Store(&sleptReading{ahead: time.Hour, total: -1})
	if got := Slept(); got <= 0 {
		t.Errorf("Slept says %s though the clocks have come apart by an hour", got)
	}
}

// A process that was stopped for 20 s between the two readings must not cache 20 s too little: its leases would be valid 20 s
// past their deadlines.
func TestSuspensionIsReadInOnePiece(t *testing.T) {
	const sleep = time.Hour
	for stopped := 1; stopped <= 4; stopped++ { // in front of which reading
		mono, reads := 5*time.Minute, 0
		total := sleptBy(func(id uintptr) (time.Duration, bool) {
			if reads++; reads == stopped {
				mono += 20 * time.Second
			}
			mono += time.Microsecond
			if id == clockBoottime {
				return mono + sleep, true
			}
			return mono, true
		})
		if total > sleep || total < sleep-clockNoise {
			t.Errorf("stopped in front of reading %d: slept %s, want %s", stopped, total, sleep)
		}
	}
}
