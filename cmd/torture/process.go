//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// readyWithin is how long a node may take from its start to /readyz.
const readyWithin = standstill

// errEnded is why a node will never be ready.
var errEnded = errors.New("the process has ended")

// node is one `escapement run` process. It leads a process group of its own, so that Ctrl-C at a
// terminal reaches this program alone.
type node struct {
	name   string
	log    string // path of its output
	cmd    *exec.Cmd
	exited chan struct{} // closed when it was waited for
	err    error         // how it exited, and when; to be read after exited is closed
	ended  time.Time

	// When the node got SIGTERM, when it was killed, and while it was frozen.
	left, killed time.Time
	frozen       judge.Span
}

// startNode starts a node that reads config.yaml in dir.
func startNode(binary, dir, name string, more ...string) (*node, error) {
	n := &node{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	out, err := os.Create(n.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	n.cmd = exec.Command(binary, append([]string{"run", "--config", "config.yaml"}, more...)...)
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = dir, out, out
	n.cmd.Env = environment("ESCAPEMENT_NODE_NAME=" + name)
	ownGroup(n.cmd)
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	go func() { // ends with the process
		n.err, n.ended = n.cmd.Wait(), time.Now()
		close(n.exited)
	}()
	return n, nil
}

func (n *node) signal(sig syscall.Signal) error {
	if err := n.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("node %s: %v: %w", n.name, sig, err)
	}
	return nil
}

func (n *node) alive() bool {
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// struck reports whether the node was killed or frozen.
func (n *node) struck() bool { return !n.killed.IsZero() || !n.frozen.From.IsZero() }

// endedAt is when it had; zero: it has not.
func (n *node) endedAt() time.Time {
	if n.alive() {
		return time.Time{}
	}
	return n.ended
}

// gone waits until the process has ended.
func (n *node) gone(ctx context.Context) error {
	select {
	case <-n.exited:
		return nil
	case <-ctx.Done():
		if n.alive() {
			return fmt.Errorf("node %s does not end: %w", n.name, ctx.Err())
		}
		return nil
	}
}

// kill kills a node.
func (s *stage) kill(n *node) {
	n.killed = time.Now()
	s.say("SIGKILL to %s at %s", n.name, stamp(n.killed))
	s.check(n.signal(syscall.SIGKILL))
	<-n.exited
}

// freeze stops a node.
func (s *stage) freeze(n *node) {
	n.frozen.From = time.Now()
	s.say("SIGSTOP to %s at %s", n.name, stamp(n.frozen.From))
	s.check(n.signal(syscall.SIGSTOP))
}

// thaw lets it go on.
func (s *stage) thaw(n *node) {
	n.frozen.Until = time.Now()
	s.say("SIGCONT to %s at %s", n.name, stamp(n.frozen.Until))
	s.check(n.signal(syscall.SIGCONT))
}

// leave sends a node SIGTERM.
func (s *stage) leave(n *node) {
	n.left = time.Now()
	s.check(n.signal(syscall.SIGTERM))
}

// end kills the process, also a frozen one, and returns when it is gone.
func (n *node) end() {
	_ = n.signal(syscall.SIGKILL) // fails only when it is gone
	<-n.exited
}

// ready waits until the node's /readyz answers 200.
func (n *node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for wait(ctx, 20*time.Millisecond) == nil {
		if !n.alive() {
			return fmt.Errorf("node %s ended at once (%w): %s", n.name, errors.Join(n.err, errEnded), n.lastWords())
		}
		url := n.said(func(r record) bool { return r.HTTP != "" }).HTTP
		if url != "" && answersOK(ctx, url+"/readyz") {
			return nil
		}
	}
	return fmt.Errorf("node %s was not ready within %s (%w): %s", n.name, readyWithin, context.Cause(ctx), n.lastWords())
}

func answersOK(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the status is the answer
	return resp.StatusCode == http.StatusOK
}

// record is a line of a node's log, as far as it is of use here.
type record struct {
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
	HTTP    string    `json:"http"`
	Run     string    `json:"run"`
	Answer  string    `json:"answer"`
}

// said returns the first line of the node's log that fits, the zero record when none does.
func (n *node) said(fits func(record) bool) record {
	f, err := os.Open(n.log)
	if err != nil {
		return record{}
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r record
		if json.Unmarshal(s.Bytes(), &r) == nil && fits(r) {
			return r
		}
	}
	return record{}
}

// lastWords are the end of the node's log.
func (n *node) lastWords() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-600):])
}
