//go:build unix

package zklock_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxies are TCP proxies that can delay replies.
type proxies struct{ delay atomic.Int64 }

// start starts a proxy to a port, for one test, and returns its own port.
func (p *proxies) start(tb testing.TB, to int) (port int) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprint("127.0.0.1:", to))
			if err != nil {
				_ = near.Close()
				continue
			}
			done := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
			all.Go(func() {
				defer done()
				p.pump(far, near, func() {})
			})
			all.Go(func() { p.pump(near, far, func() { <-time.After(time.Duration(p.delay.Load())) }) })
		}
	})
	tb.Cleanup(func() {
		cancel()
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// pump copies until one side is closed, and then closes both.
func (p *proxies) pump(to, from net.Conn, wait func()) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		wait()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
