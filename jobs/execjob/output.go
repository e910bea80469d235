package execjob

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// maxQuoted is how much of the output an error text quotes, in bytes.
const maxQuoted = 1 << 10

// drainWait is how long the rest of the output is awaited once the group is gone. Only a
// process that left the group can hold the pipe open longer.
const drainWait = time.Second

// captured is the reading end of a command's output. The copying goroutine ends when the
// last writer is gone or finish closes the pipe.
type captured struct {
	pipe *os.File
	done chan struct{}
}

// startCaptured starts a group's command with both outputs in one pipe, which is copied to a writer.
func startCaptured(cmd *exec.Cmd, g *Group, to io.Writer) (*captured, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
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
		// The only error is that of the pipe closed by finish, which means: enough.
		_, _ = io.Copy(to, r)
	}()
	return c, nil
}

// finish waits for the output to end and closes the pipe; afterwards nothing more is written.
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

// lastLines returns the end of the output as valid text: whole lines as far as they fit
// into most bytes, else the end of the last line.
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
	// Cutting may have split a character; drop what is left of it.
	return strings.ToValidUTF8(cut, "")
}
