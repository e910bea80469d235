package lane

import (
	"fmt"
	"sync"
	"time"
)

// samplesKept is how many samples the estimate chooses from: the one with the shortest round
// trip wins.
const samplesKept = 8

// driftPerSecond is how far two healthy clocks may run apart in a second; NTP slews by at most
// 500 ppm.
const driftPerSecond = 500 * time.Microsecond

// unseen is how long the node may go without a sample and still count that time as steady.
const unseen = 3 * sampleEvery

// Clock is the node's idea of Redis' clock: the last good sample plus the node's own monotonic
// clock. The node's wall clock is used for one thing only, to judge a large step.
type Clock struct {
	wall    func() time.Time
	maxStep time.Duration

	mu      sync.Mutex
	sent    time.Time // when the latest sample was asked for
	samples []sample
	best    sample
	heard   sample    // the last one, believed or not
	steady  time.Time // since when Redis' clock has run steadily, monotonic; zero before the first sample
	latest  time.Time // when the latest good sample came
	written time.Time // when Redis took a write last, as far as it is known; zero: nobody says
	runID   string
	stopped error // why the node must not claim, nil when it may
}

// sample is one look at Redis' clock: at local (monotonic, the middle of the round trip) Redis
// said redis, give or take half.
type sample struct {
	local, redis time.Time
	half         time.Duration
}

// at is what the sample makes of a local instant.
func (s sample) at(local time.Time) time.Time { return s.redis.Add(local.Sub(s.local)) }

// NewClock makes a clock that has not been read; steps larger than maxStep are judged by wall.
func NewClock(wall func() time.Time, maxStep time.Duration) *Clock {
	return &Clock{wall: wall, maxStep: maxStep}
}

// Now is Redis' time as this node believes it; the zero time before the first sample.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return time.Time{}
	}
	return c.best.at(time.Now()).UTC()
}

// last is Redis' time as it was read last, believed or not.
func (c *Clock) last() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.at(time.Now()).UTC()
}

// Past is an instant that Redis' clock has certainly reached, as far as the best sample can tell: a
// claim sent for it does not come early. The zero time before the first sample.
func (c *Clock) Past() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return time.Time{}
	}
	return c.best.at(time.Now()).Add(-c.best.half).UTC()
}

// Usable is nil when the node may claim by this clock.
func (c *Clock) Usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return fmt.Errorf("Redis' clock has not been read yet")
	}
	return c.stopped
}

// steadyFor is how long this node has seen Redis' clock run steadily, on one server run that took writes: while it takes none, leases
// lapse whose nodes live.
func (c *Clock) steadyFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steady.IsZero() || !c.written.IsZero() && time.Since(c.written) > unseen {
		return 0
	}
	return time.Since(c.steady)
}

// wrote takes up that Redis has taken a write.
func (c *Clock) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.written.IsZero() && now.Sub(c.written) > unseen {
		c.steady = now
	}
	c.written = now
}

// Server is the id of the Redis whose clock this is.
func (c *Clock) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runID
}

// Ahead is by how much Redis' clock is ahead of the node's wall clock.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return 0
	}
	return c.best.at(time.Now()).Sub(c.wall())
}

// change says what a sample showed.
type change struct {
	Step    time.Duration // by how much Redis' clock stepped; 0 when it ran steadily
	Restart bool          // Redis is another run of the server than before
	Refused bool          // the step is not believed: the node stops claiming
}

// add takes a sample: sent and received are local instants around the request. A difference to
// the estimate beyond the sampling error is a step: the steady time starts anew and older samples
// go. A step larger than maxStep is believed only if it brings Redis nearer to the node's own
// wall clock; else the node stops claiming until a later sample is believed again.
func (c *Clock) add(sent, received, redis time.Time, runID string) change {
	half := received.Sub(sent) / 2
	s := sample{local: sent.Add(half), redis: redis, half: half}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.Before(c.sent) {
		return change{} // it was overtaken by one that knows better who the server is
	}
	c.sent = sent
	if len(c.samples) == 0 {
		c.begin(s, runID)
		return change{}
	}
	c.heard = s
	var got change
	if runID != c.runID {
		got.Restart = true
		c.runID, c.steady = runID, received
	}
	step := s.redis.Sub(c.best.at(s.local))
	if step.Abs() <= s.half+c.best.half+time.Millisecond+c.drift(s) {
		if received.Sub(c.latest) > unseen {
			c.steady = received // it may have swung forth and back meanwhile
		}
		c.keep(s)
		c.latest, c.stopped = received, nil
		return got
	}
	got.Step = step
	//guard:max-step P1 a large step away from this node's own clock is not believed
	if step.Abs() > c.maxStep && !c.nearer(s) {
		got.Refused = c.stopped == nil
		//guard:steady-after-a-step P4 a step that was not believed makes the clock unsteady too: others may have leases by it
		c.steady = received
		c.stopped = fmt.Errorf("Redis' clock stepped by %s, away from this node's own; set one of the two right, the node goes on by itself", step.Round(time.Millisecond))
		return got
	}
	c.begin(s, runID)
	return got
}

// begin starts the estimate from one sample alone. Must be called with mu held.
func (c *Clock) begin(s sample, runID string) {
	received := s.local.Add(s.half)
	c.samples, c.best, c.heard, c.steady, c.latest, c.runID, c.stopped = []sample{s}, s, s, received, received, runID, nil
}

// drift is how far the clocks may have run apart since the best sample. Must be called with mu held.
func (c *Clock) drift(s sample) time.Duration {
	return time.Duration(s.local.Sub(c.best.local).Seconds() * float64(driftPerSecond))
}

// keep adds a sample and chooses the best anew. Must be called with mu held.
func (c *Clock) keep(s sample) {
	c.samples = append(c.samples, s)
	if len(c.samples) > samplesKept {
		c.samples = append(c.samples[:0], c.samples[1:]...)
	}
	c.best = c.samples[0]
	for _, s := range c.samples {
		if s.half <= c.best.half {
			c.best = s
		}
	}
}

// nearer says whether a sample brings Redis nearer to the node's wall clock than the estimate
// had it. Must be called with mu held.
func (c *Clock) nearer(s sample) bool {
	now, wall := time.Now(), c.wall()
	return s.at(now).Sub(wall).Abs() < c.best.at(now).Sub(wall).Abs()
}
