package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/execjob"
)

const (
	// outputMost bounds the kept output of a command, in bytes, and textMost the text in a
	// variable.
	outputMost = 4 << 10
	textMost   = 64 << 10
	// endTime is the time from SIGTERM to SIGKILL.
	endTime = 2 * time.Second
)

// runCommand runs a command with a message, until it ends or ctx does.
func runCommand(ctx context.Context, command []string, m Message) error {
	out := &tail{}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the operator names the command
	cmd.Stdin = strings.NewReader(m.value("json") + "\n")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = endTime // a process that it left behind may hold its output open
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ESCAPEMENT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "NOTIFY_ID="+m.ID, "NOTIFY_NAMESPACE="+m.Namespace, "NOTIFY_TEXT="+strings.ReplaceAll(clip(m.Text, textMost), "\x00", ""))
	group := execjob.NewGroup(cmd)
	if err := group.Start(); err != nil {
		return fmt.Errorf("command %s not started: %w", command[0], err)
	}
	defer group.Close()
	var err error
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) { // it has succeeded, and left a process that holds its output open
			err = nil
		}
	}()
	select {
	case <-exited:
		if err != nil {
			return fmt.Errorf("command %s: %w%s", command[0], err, colon(line(strings.TrimSpace(out.b.String()), errorMost)))
		}
		return nil
	case <-ctx.Done():
	}
	group.Terminate()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		group.Kill()
		<-exited
	}
	return fmt.Errorf("command %s ended: %w", command[0], context.Cause(ctx))
}

// tail keeps the beginning of the output. One goroutine writes: os/exec has one for both outputs.
type tail struct{ b bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, outputMost-t.b.Len()))])
	return len(p), nil
}

func clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}
