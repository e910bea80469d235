package lane

import (
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
)

// samplesKept is how many samples the estimate chooses from. The one with the shortest round trip
// wins.
const samplesKept = 8

// driftPerSecond is how far two healthy clocks may drift apart in a second. NTP slews by at most
// 500 ppm.
const driftPerSecond = 500 * time.Microsecond

// maxGap is the longest time without a sample that still counts as steady.
const maxGap = 3 * failover.SampleEvery

// Clock estimates Redis' clock: the last good sample plus the node's own monotonic clock. The wall
// clock only judges large steps.
type Clock struct {
	wall    func() time.Time
	maxStep time.Duration

	mu         sync.Mutex
	sent       time.Time // when the latest sample was requested
	samples    []sample
	best       sample
	lastSample sample    // the last sample, believed or not
	steady     time.Time // since when Redis' clock has run steadily, monotonic; zero before the first sample
	lastGood   time.Time // when the latest good sample came
	lastWrite  time.Time // when Redis last took a write; zero: not known
	runID      string
	stopped    error // why the node must not claim; nil when it may
}

// sample is one reading of Redis' clock: at local (monotonic, the middle of the round trip) Redis'
// time was redis, plus or minus half.
type sample struct {
	local, redis time.Time
	half         time.Duration
}

// at converts a local instant to Redis' time.
func (s sample) at(local time.Time) time.Time { return s.redis.Add(local.Sub(s.local)) }

// NewClock makes a clock without samples. wall judges steps larger than maxStep.
func NewClock(wall func() time.Time, maxStep time.Duration) *Clock {
	return &Clock{wall: wall, maxStep: maxStep}
}

// Now is the estimate of Redis' time; the zero time before the first sample.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return time.Time{}
	}
	return c.best.at(time.Now()).UTC()
}

// LastRead is Redis' time by the last sample, believed or not.
func (c *Clock) LastRead() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastSample.at(time.Now()).UTC()
}

// Past is an instant that Redis' clock has certainly reached, by the best sample. A claim sent for
// it is never early. It is the zero time before the first sample.
func (c *Clock) Past() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return time.Time{}
	}
	return c.best.at(time.Now()).Add(-c.best.half).UTC()
}

// Usable returns nil when the node may claim by this clock.
func (c *Clock) Usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return fmt.Errorf("Redis' clock has not been read yet")
	}
	return c.stopped
}

// steadyFor is how long this node has seen Redis' clock run steadily, on one server that took
// writes. While a server takes none, leases of living nodes lapse.
func (c *Clock) steadyFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steady.IsZero() || !c.lastWrite.IsZero() && time.Since(c.lastWrite) > maxGap {
		return 0
	}
	return time.Since(c.steady)
}

// noteWrite notes that Redis has taken a write.
func (c *Clock) noteWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.lastWrite.IsZero() && now.Sub(c.lastWrite) > maxGap {
		c.steady = now
	}
	c.lastWrite = now
}

// Server is the id of the Redis server whose clock this is.
func (c *Clock) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runID
}

// Ahead is how far Redis' clock is ahead of the node's wall clock.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return 0
	}
	return c.best.at(time.Now()).Sub(c.wall())
}

// Unbelieved is how far Redis' clock is ahead of the estimate, by the last sample, while the node does not believe that clock; 0 while it
// does.
func (c *Clock) Unbelieved() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == nil {
		return 0
	}
	now := time.Now()
	return c.lastSample.at(now).Sub(c.best.at(now))
}

// change is a sample's effect on the clock.
type change struct {
	Step      time.Duration // how far Redis' clock stepped; 0 when it ran steadily
	Overtaken bool          // a later sample has overtaken this one, which is dropped
	Restart   bool          // another server, or the same one restarted
	Refused   bool          // the step is not believed: the node stops claiming
}

// add takes a sample; sent and received are local instants around the request. A difference beyond
// the sampling error is a step: the steady time starts anew and older samples are dropped. A step
// larger than maxStep is believed only if it brings Redis nearer to the node's wall clock. Else the
// node stops claiming until it believes a later sample.
func (c *Clock) add(sent, received, redis time.Time, runID string) change {
	half := received.Sub(sent) / 2
	s := sample{local: sent.Add(half), redis: redis, half: half}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.Before(c.sent) { // a later sample has overtaken it
		return change{Overtaken: true}
	}
	c.sent = sent
	if len(c.samples) == 0 {
		c.begin(s, runID)
		return change{}
	}
	c.lastSample = s
	var got change
	if runID != c.runID {
		got.Restart = true
		c.runID, c.steady = runID, received
	}
	step := s.redis.Sub(c.best.at(s.local))
	if step.Abs() <= s.half+c.best.half+time.Millisecond+c.drift(s) {
		if received.Sub(c.lastGood) > maxGap {
			c.steady = received // the clock may have stepped forth and back meanwhile
		}
		c.keep(s)
		c.lastGood, c.stopped = received, nil
		return got
	}
	got.Step = step
	//guard:max-step P1 a large step away from this node's own clock is not believed
	if step.Abs() > c.maxStep && !c.nearer(s) {
		got.Refused = c.stopped == nil
		//guard:steady-after-a-step P4 a step that was not believed makes the clock unsteady too: other nodes may use it
		c.steady = received
		c.stopped = fmt.Errorf("Redis' clock stepped by %s, away from this node's clock; correct the wrong one, and the node goes on by itself", step.Round(time.Millisecond))
		return got
	}
	c.begin(s, runID)
	return got
}

// begin starts the estimate from one sample. The caller holds mu.
func (c *Clock) begin(s sample, runID string) {
	received := s.local.Add(s.half)
	c.samples, c.best, c.lastSample, c.steady, c.lastGood, c.runID, c.stopped = []sample{s}, s, s, received, received, runID, nil
}

// drift is how far the clocks may have drifted apart since the best sample. The caller holds mu.
func (c *Clock) drift(s sample) time.Duration {
	return time.Duration(s.local.Sub(c.best.local).Seconds() * float64(driftPerSecond))
}

// keep adds a sample and chooses the best one. The caller holds mu.
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

// nearer reports whether a sample brings Redis nearer to the node's wall clock than the estimate.
// The caller holds mu.
func (c *Clock) nearer(s sample) bool {
	now, wall := time.Now(), c.wall()
	return s.at(now).Sub(wall).Abs() < c.best.at(now).Sub(wall).Abs()
}
