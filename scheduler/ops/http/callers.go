package opshttp

import (
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/escapement/escapement/scheduler/ops"
)

// callers bounds the requests that stay open for long: at most so many in all, and for each caller
// where more than half of the places are taken, so that one caller leaves room for the rest. Behind
// a proxy all users may be one caller.
type callers struct {
	each, most int

	mu   sync.Mutex
	open map[string]int // by caller
	all  int
}

// tooMany is the refusal of one more.
type tooMany struct{ what string }

func (e tooMany) Error() string { return e.what + "; ask again in a few seconds" }

func (e tooMany) Unwrap() error { return ops.ErrTooMany }

// begin counts one more of a caller until end, or returns tooMany.
func (c *callers) begin(caller string) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	//guard:caller-limit P8 one caller does not take the places of all others
	if own := c.open[caller]; own >= c.each && c.all > c.most/2 {
		return nil, tooMany{fmt.Sprintf("%d such requests of yours are open here already, of %d in all", own, c.all)}
	}
	if c.all >= c.most {
		return nil, tooMany{fmt.Sprintf("%d such requests are open here already", c.most)}
	}
	if c.open == nil {
		c.open = make(map[string]int)
	}
	c.open[caller]++
	c.all++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[caller]--; c.open[caller] == 0 {
			delete(c.open, caller)
		}
		c.all--
	}), nil
}

// callerOf is the caller of a request, for limits: the address, and an authenticated name. A proxy
// is one address.
func (s *Server) callerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if s.cfg.Access.Open() {
		return host
	}
	return identityOf(r).Name + " at " + host
}
