package redlock

import "sync"

// calls runs the calls to masters. Unlike a sync.WaitGroup it may be waited for while new calls begin.
type calls struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is running; nil unless someone waits
}

// start runs f in a goroutine.
func (c *calls) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	go func() {
		f()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running--; c.running == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}()
}

// wait waits until none is running.
func (c *calls) wait() {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	<-idle
}
