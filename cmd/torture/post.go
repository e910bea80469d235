//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// post writes the sink for jobs that are HTTP calls: one line for each call. That costs a hundredth
// of a process, so that a machine has room for hundreds of runs a second.
type post struct {
	server http.Server

	mu   sync.Mutex
	file *os.File
	err  error // the first
}

// openPost opens the sink where jobs are HTTP calls.
func (s *stage) openPost() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	f, err := os.OpenFile(s.sink(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // commands append to it too
	s.check(err)
	p := &post{file: f}
	p.server = http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with close
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.fail(err)
		}
	}()
	s.post, s.url = p, "http://"+l.Addr().String()+"/"
}

func (p *post) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// ServeHTTP writes a line: order in the file is order of arrival.
func (p *post) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := func(name string) string { return r.Header.Get(name) }
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.file, "%s %s %s %s %s %s %d\n", h("Escapement-Job"), h("Escapement-Tick"), h("Fencing-Token"),
		h("Escapement-Node"), h("Escapement-Run"), judge.Start, time.Now().UnixNano())
	if err != nil {
		p.err = errors.Join(p.err, err)
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// close returns the errors so far.
func (p *post) close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.err, err, p.file.Close())
}
