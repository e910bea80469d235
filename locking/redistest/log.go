package redistest

import (
	"strings"
	"sync"
)

// Log collects what a test's logger writes, from any goroutine, also while the test reads. The zero value is empty.
type Log struct {
	mu  sync.Mutex
	buf strings.Builder
}

// Write adds to the text.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns the text so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
