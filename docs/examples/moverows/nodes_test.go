//go:build unix

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// process is a node of the cluster under test.
type process struct {
	name string
	cmd  *exec.Cmd
	log  bytes.Buffer  // complete when exited is closed
	done chan struct{} // closed when the process has ended
	err  error         // its exit error, after done
}

func buildProgram(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "moverows")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// startNode starts a node and kills it, if it still lives, when the test ends. The log of a failed test's nodes is shown.
func startNode(t *testing.T, bin, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(bin, append(args, "-name", name)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error: it has ended already
		<-p.done
		if t.Failed() {
			t.Logf("node %s: %v\n%s", name, p.err, p.log.Bytes())
		}
	})
	return p
}

// alive fails the test when the node has ended by itself.
func (p *process) alive(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("node %s has ended: %v", p.name, p.err)
	default:
	}
}

// kill sends SIGKILL: the node cannot hand over.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
}

// stop ends the node in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if <-p.done; p.err != nil {
		t.Errorf("node %s, told to stop, ended with %v", p.name, p.err)
	}
}
