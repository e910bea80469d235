package ticks

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a measured process, as its parent sees it.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// startProcess starts this program once more. It is killed when ctx ends.
func startProcess(ctx context.Context, args []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, args...)} //nolint:gosec // G204: this program itself
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// hear waits for a word from the process. A process that takes too long is killed.
func (p *process) hear(word string) error {
	return p.within(func() error {
		line, err := p.out.ReadString('\n')
		if err == nil && strings.TrimSpace(line) != word {
			err = fmt.Errorf("it says %q in place of %q", line, word)
		}
		return err
	})
}

// report reads the process's report, and waits for its end.
func (p *process) report() (r report, err error) {
	err = p.within(func() error {
		if err := json.NewDecoder(p.out).Decode(&r); err != nil {
			return err
		}
		return p.cmd.Wait()
	})
	return r, err
}

func (p *process) within(f func() error) error {
	timer := time.AfterFunc(readyWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	return f()
}
