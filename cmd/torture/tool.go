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

// tool runs a command of the program and returns when it has ended, however it ended.
func (s *stage) tool(ctx context.Context, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, toolWithin)
	defer cancel()
	done, _, err := s.launch(ctx, args)
	if err != nil {
		return answer{}, err
	}
	return <-done, ctx.Err()
}

// must is tool for a command that has to succeed.
func (s *stage) must(ctx context.Context, args ...string) answer {
	a, err := s.tool(ctx, args...)
	if err == nil && a.code != 0 {
		err = fmt.Errorf("escapement %s: exit %d: %s", strings.Join(args, " "), a.code, a.words)
	}
	s.check(err)
	return a
}

// tooEarly is the exit code of a command that cannot do now what it is told.
const tooEarly = 5

// refused is tool for a command that has to end with that; what says it in words.
func (s *stage) refused(ctx context.Context, what string, args ...string) error {
	a, err := s.tool(ctx, args...)
	if err == nil && a.code != tooEarly {
		err = fmt.Errorf("%s: exit %d, not %d: %s", what, a.code, tooEarly, a.words)
	}
	return err
}

// cut runs a command and sends SIGKILL to it as soon as seen says so. It is asked all the time.
func (s *stage) cut(ctx context.Context, seen func(context.Context) bool, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, toolWithin)
	defer cancel()
	done, kill, err := s.launch(ctx, args)
	if err != nil {
		return answer{}, err
	}
	for {
		select {
		case a := <-done:
			return a, ctx.Err()
		default:
		}
		if seen(ctx) {
			kill()
			return <-done, ctx.Err()
		}
	}
}

// launch starts a command; done gets its answer, and kill ends it with SIGKILL.
func (s *stage) launch(ctx context.Context, args []string) (done <-chan answer, kill func(), err error) {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var words bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, &words, &words, environment()
	a := answer{began: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("escapement %s: %w", strings.Join(args, " "), err)
	}
	ended := make(chan answer, 1)
	go func() { // ends with the process
		_ = cmd.Wait() // the code says it
		a.ended, a.code, a.words = time.Now(), cmd.ProcessState.ExitCode(), strings.TrimSpace(words.String())
		ended <- a
	}()
	return ended, func() { _ = cmd.Process.Signal(syscall.SIGKILL) }, nil // fails only when it is gone
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
