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

// post writes the sink for jobs that are HTTP calls: one line for each that arrives. That costs a hundredth of a
// process, so that a machine has room for hundreds of runs a second.
type post struct {
	url    string
	server http.Server

	mu   sync.Mutex
	file *os.File
	err  error // the first
}

// newPost listens; there is a sink only after open.
func newPost() (*post, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &post{url: "http://" + l.Addr().String() + "/"}
	p.server = http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with close
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.fail(err)
		}
	}()
	return p, nil
}

func (p *post) open(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the path is made by this program; commands append to it too
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file = f
	return err
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
	_, err := fmt.Fprintf(p.file, "%s %s %s %s %s %s %d %s/%s %s\n", h("Escapement-Job"), h("Escapement-Tick"), h("Fencing-Token"),
		h("Escapement-Node"), h("Escapement-Run"), judge.Start, time.Now().UnixNano(), h("Escapement-Shard"), h("Escapement-Shards"), h(labelHeader))
	if err != nil {
		p.err = errors.Join(p.err, err)
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// close returns what went wrong on the way.
func (p *post) close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		err = errors.Join(err, p.file.Close())
	}
	return errors.Join(p.err, err)
}
