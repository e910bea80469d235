//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// toolWithin is how long a command of the program may take.
const toolWithin = time.Minute

// answer is what became of a command.
type answer struct {
	began, ended time.Time
	code         int // -1 when it was killed
	words        string
}

// tool runs a command of the program and returns when it has ended with a code. what says in words why it must.
func (s *stage) tool(ctx context.Context, code int, what string, args ...string) answer {
	a := s.cut(ctx, func(context.Context) bool { return false }, args...)
	if a.code != code {
		s.check(fmt.Errorf("%s: exit %d, not %d: %s", what, a.code, code, a.words))
	}
	return a
}

// must is tool for a command that has to succeed.
func (s *stage) must(ctx context.Context, args ...string) answer {
	return s.tool(ctx, 0, "escapement "+strings.Join(args, " "), args...)
}

// refused is tool for a command that cannot do now what it is told; what says it in words.
func (s *stage) refused(ctx context.Context, what string, args ...string) {
	const tooEarly = 5
	s.tool(ctx, tooEarly, what, args...)
}

// cut runs a command and sends SIGKILL to it as soon as seen says so, which is asked all the time. It returns when the
// command has ended, however it ended.
func (s *stage) cut(ctx context.Context, seen func(context.Context) bool, args ...string) answer {
	ctx, cancel := context.WithTimeout(ctx, toolWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var words bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, &words, &words, environment()
	a := answer{began: time.Now()}
	s.check(cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process
		_ = cmd.Wait() // the code says it
		close(ended)
	}()
	for killed := false; ; {
		select {
		case <-ended:
			a.ended, a.code, a.words = time.Now(), cmd.ProcessState.ExitCode(), strings.TrimSpace(words.String())
			s.check(ctx.Err())
			return a
		case <-time.After(100 * time.Microsecond):
			if !killed && seen(ctx) {
				killed = true
				_ = cmd.Process.Signal(syscall.SIGKILL) // fails only when it is gone
			}
		}
	}
}

// how tells what became of a command that was to be killed.
func (a answer) how() string {
	switch a.code {
	case 0:
		return "it was done by then"
	case -1:
		return "it was killed"
	}
	return fmt.Sprintf("it had ended with %d: %s", a.code, a.words)
}
