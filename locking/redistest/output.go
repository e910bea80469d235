//go:build unix

package redistest

import (
	"io"
	"strings"
	"sync"
)

// output collects the output of a redis-server and signals when the server is ready.
type output struct {
	ready chan struct{} // closed when it accepts connections
	whole io.Writer     // gets a copy of all output; may be nil

	mu   sync.Mutex
	text string
	done bool
}

// outputKept is how much of the text is kept for error messages, in bytes.
const outputKept = 4 << 10

func newOutput() *output { return &output{ready: make(chan struct{})} }

// Write takes a piece of output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.whole != nil {
		_, _ = o.whole.Write(p) // for a person to read afterwards; nothing depends on it
	}
	o.text += string(p)
	if !o.done && (strings.Contains(o.text, "Ready to accept connections") || strings.Contains(o.text, "Sentinel ID is")) {
		o.done = true
		close(o.ready)
	}
	if len(o.text) > outputKept {
		o.text = o.text[len(o.text)-outputKept:]
	}
	return len(p), nil
}

// String returns the last part of the output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.text)
}
