package execjob

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/internal/machine"
)

// maxQuoted bounds the output in an error text, in bytes.
const maxQuoted = 1 << 10

// drainWait is how long to wait for the rest of the output after the group has ended. Only a
// process that left the group keeps the pipe open longer.
const drainWait = time.Second

// captured is the reading end of a command's output. The copying goroutine ends with the last
// writer, or when finish closes the pipe.
type captured struct {
	pipe *os.File
	done chan struct{}
}

// startCaptured starts a group's command with both outputs in one pipe, which is copied to a writer.
func startCaptured(cmd *exec.Cmd, g *Group, to io.Writer) (*captured, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, machine.Fault(err)
	}
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := g.Start(); err != nil {
		r.Close()
		return nil, err
	}
	c := &captured{pipe: r, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		// The only error is the one of the pipe that finish has closed.
		_, _ = io.Copy(to, r)
	}()
	return c, nil
}

// finish waits for the end of the output, and closes the pipe. Nothing is written afterwards.
func (c *captured) finish() {
	timer := time.NewTimer(drainWait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
	c.pipe.Close()
	<-c.done
}

// lastLines returns the end of the output as valid text: the whole lines that fit into most bytes,
// else the end of the last line.
func lastLines(output []byte, most int) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(output), "\uFFFD"))
	if len(text) <= most {
		return text
	}
	cut := text[len(text)-most:]
	if text[len(text)-most-1] == '\n' {
		return cut
	}
	if i := strings.IndexByte(cut, '\n'); i >= 0 {
		return cut[i+1:]
	}
	// Drop a character that was cut in two.
	return strings.ToValidUTF8(cut, "")
}
