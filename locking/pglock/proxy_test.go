//go:build unix

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// proxy is a TCP proxy that can fall silent: connections stay open, and nothing passes.
type proxy struct {
	listener net.Listener
	server   string
	silent   atomic.Bool
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(tb testing.TB, s *server) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: l, server: fmt.Sprintf("127.0.0.1:%d", s.port)}
	p.running.Go(p.accept)
	return p
}

// close ends all connections, and returns when they have ended.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *proxy) accept() {
	var dialer net.Dialer
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := dialer.DialContext(context.Background(), "tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.running.Go(func() { p.pass(client, server) })
		p.running.Go(func() { p.pass(server, client) })
	}
}

func (p *proxy) pass(from io.Reader, to net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			_ = to.Close()
			return
		}
		if !p.silent.Load() {
			_, _ = to.Write(buffer[:n])
		}
	}
}

// TestSilentProxy: the context of a holder behind a network that falls silent ends before another can hold the lock.
func TestSilentProxy(t *testing.T) {
	t.Parallel()
	s := theServer(t)
	p := newProxy(t, s)
	defer p.close() // before the pools, which wait for an answer
	db := theDatabase(t)
	behind := &database{cfg: db.cfg}
	behind.dsn = strings.Replace(db.dsn, fmt.Sprintf("port=%d", s.port), fmt.Sprintf("port=%d", p.listener.Addr().(*net.TCPAddr).Port), 1)
	lease, err := crewLocker(t, behind).Acquire(t.Context(), "x", locking.Options{TTL: crewTTL})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	if err := lease.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := make(chan time.Time, 1)
	go func() {
		<-lease.Context().Done()
		told <- time.Now()
	}()
	p.silent.Store(true)
	next, err := crewLocker(t, db).Acquire(t.Context(), "x", locking.Options{TTL: crewTTL, Wait: time.Minute})
	taken := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if lease.Context().Err() == nil || !errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost) {
		t.Fatalf("another has the lock, and the holder's context has cause %v", context.Cause(lease.Context()))
	}
	ended := <-told
	t.Logf("told %s before the lock was taken", taken.Sub(ended).Round(time.Millisecond))
	if !ended.Before(taken) || next.Token() <= lease.Token() {
		t.Errorf("told %s after the lock was taken; token %d after %d", ended.Sub(taken), next.Token(), lease.Token())
	}
}
