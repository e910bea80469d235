//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// address is a TCP address in front of servers, as a virtual IP address or a DNS name is: what arrives there goes to the server that it
// points to.
type address struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool // both ends of all that are open
}

func openAddress(to string) (*address, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &address{listener: l, to: to, conns: map[net.Conn]bool{}}
	a.wg.Go(a.accept)
	return a, nil
}

func (a *address) String() string { return a.listener.Addr().String() }

// point has the address lead to another server, and cuts what is open.
func (a *address) point(to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = to
	for c := range a.conns {
		_ = c.Close() // to cut it is the purpose
	}
}

func (a *address) close() error {
	err := a.listener.Close()
	a.point("")
	a.wg.Wait()
	return err
}

func (a *address) accept() {
	for {
		in, err := a.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			a.wg.Go(func() { a.forward(in) })
		}
	}
}

// forward joins a connection to the server until one of the two ends.
func (a *address) forward(in net.Conn) {
	defer in.Close()
	a.mu.Lock()
	to := a.to
	a.mu.Unlock()
	out, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return // as a machine that refuses the connection
	}
	defer out.Close()
	if !a.enter(to, in, out) {
		return
	}
	defer a.leave(in, out)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out) // its end is the connection's end
		_ = in.Close()
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

// enter notes what is open; false when the address leads elsewhere by now.
func (a *address) enter(to string, conns ...net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.to != to {
		return false
	}
	for _, c := range conns {
		a.conns[c] = true
	}
	return true
}

func (a *address) leave(conns ...net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range conns {
		delete(a.conns, c)
	}
}
