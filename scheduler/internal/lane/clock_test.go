package lane

import (
	"testing"
	"testing/synctest"
	"time"
)

// world is a Redis clock that a test sets, seen through round trips of a stated length.
type world struct {
	c      *Clock
	offset time.Duration
	run    string
}

func (w *world) sample(trip time.Duration) change {
	sent := time.Now()
	time.Sleep(trip / 2)
	redis := time.Now().Add(w.offset)
	time.Sleep(trip / 2)
	return w.c.add(sent, time.Now(), redis, w.run)
}

// watch samples once a second.
func (w *world) watch(seconds int) {
	for range seconds {
		w.sample(time.Millisecond)
		time.Sleep(time.Second)
	}
}

func (w *world) off() time.Duration { return w.c.Now().Sub(time.Now().Add(w.offset)) }

func inWorld(t *testing.T, wall time.Duration, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{run: "a", c: NewClock(func() time.Time { return time.Now().Add(wall) }, time.Minute)}
		if w.c.Usable() == nil || !w.c.Now().IsZero() || w.c.steadyFor() != 0 {
			t.Error("a clock that was never read must not be usable")
		}
		test(t, w)
	})
}

func TestSteadyStartsAnew(t *testing.T) {
	for name, upset := range map[string]func(w *world){
		"at a step forward":      func(w *world) { w.offset += 20 * time.Millisecond },
		"at a step backward":     func(w *world) { w.offset -= 20 * time.Millisecond },
		"at another server run":  func(w *world) { w.run = "b" },
		"not for a slow trip":    nil,
		"at a large step nearby": func(w *world) { w.offset += 30 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(t *testing.T, w *world) {
				w.watch(10)
				before := w.c.steadyFor()
				if before < 9*time.Second {
					t.Fatalf("steady for %s after 10 s", before)
				}
				trip := time.Millisecond
				if upset != nil {
					upset(w)
				} else {
					trip = 300 * time.Millisecond
				}
				w.sample(trip)
				if anew := w.c.steadyFor() < before; anew != (upset != nil) {
					t.Errorf("steady for %s, was %s", w.c.steadyFor(), before)
				}
				if off := w.off(); off.Abs() > time.Millisecond {
					t.Errorf("off by %s", off)
				}
			})
		})
	}
}

func TestLargeStepIsJudgedByTheWall(t *testing.T) {
	inWorld(t, 0, func(t *testing.T, w *world) {
		w.sample(time.Millisecond)
		w.offset = time.Hour // away from the wall clock
		if got := w.sample(time.Millisecond); !got.Refused || w.c.Usable() == nil {
			t.Errorf("a step of an hour away from the node's clock was believed: %+v", got)
		}
		if got := w.sample(time.Millisecond); got.Refused || w.c.Usable() == nil {
			t.Error("said twice, or forgotten")
		}
		w.offset = 0
		if w.sample(time.Millisecond); w.c.Usable() != nil {
			t.Error("the node did not go on when Redis' clock was put right")
		}
	})
	inWorld(t, time.Hour, func(t *testing.T, w *world) {
		w.sample(time.Millisecond)
		w.offset = time.Hour // to where the wall clock is
		if got := w.sample(time.Millisecond); got.Step < 59*time.Minute || w.c.Usable() != nil || w.off() != 0 {
			t.Errorf("a step towards the node's clock was refused: %+v, off %s", got, w.off())
		}
	})
}

// Time that the node has not watched is not steady: the clock may have swung forth and back.
func TestClockIsSteadyOnlyWhereItWasSeen(t *testing.T) {
	inWorld(t, 0, func(t *testing.T, w *world) {
		w.watch(5)
		if s := w.c.steadyFor(); s < 4*time.Second {
			t.Errorf("steady for %s, after 5 s of samples", s)
		}
		time.Sleep(20 * time.Second) // Redis was out of reach
		w.sample(time.Millisecond)
		if s := w.c.steadyFor(); s != 0 {
			t.Errorf("steady for %s at the first sample after a pause", s)
		}
	})
}

// A step that is not believed is a step all the same: when the clock comes back, it has not run steadily.
func TestClockIsNotSteadyThroughARefusedStep(t *testing.T) {
	inWorld(t, 0, func(t *testing.T, w *world) {
		w.watch(10)
		w.offset = -90 * time.Second // away from the wall clock
		w.watch(1)                   // for less than what counts as unseen
		if w.c.Usable() == nil {
			t.Fatal("the step was believed: this proves nothing")
		}
		w.offset = 0
		w.watch(2)
		if s := w.c.steadyFor(); w.c.Usable() != nil || s > 4*time.Second {
			t.Errorf("steady for %s, 2 s after the clock came back (%v)", s, w.c.Usable())
		}
	})
}
