package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

const (
	// logQueueMax bounds the lines that wait for a slow reader, in bytes.
	logQueueMax = 1 << 20
	// logFlush is how long the end of a program waits for such a reader.
	logFlush = time.Second
)

// logWriter is the stderr of a program that goes on without a reader. Its Write returns at once:
// one goroutine writes the lines, lines beyond logQueueMax are dropped, and a line in their place
// reports how many.
type logWriter struct {
	out  io.Writer
	more chan struct{} // holds one signal: there is something to write

	mu     sync.Mutex
	queue  []logLine
	size   int                    // of the queue, in bytes
	lost   int                    // dropped lines that are not reported yet
	done   bool                   // stopped
	report func(lines int) []byte // makes the line that reports them
}

// logLine is a line that waits, or a mark.
type logLine struct {
	text  []byte
	lines int           // that are lost when it cannot be written
	mark  chan struct{} // of flush, closed when all before it has been written; then there is no text
}

// newLogWriter starts a writer, which lives until stop: mostly as long as the program.
func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, more: make(chan struct{}, 1)}
	w.report = func(lines int) []byte {
		return fmt.Appendf(nil, "escapement: %d lines are missing here: nobody read stderr\n", lines)
	}
	go w.run()
	return w
}

// Unwrap returns the writer behind w.
func (w *logWriter) Unwrap() io.Writer { return w.out }

// Outlive makes the process go on without a reader of stdout or stderr: a reader that hangs delays
// nothing, and a reader that is gone does not end the process. SIGPIPE is received, not ignored, so
// that it still ends the commands that the process starts.
func (a *App) Outlive() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a.Stderr = newLogWriter(a.Stderr)
}

// flushLog waits, at the end of the program, until its last lines are written, or logFlush is over.
func (a *App) flushLog() {
	if w, ok := a.Stderr.(*logWriter); ok {
		w.flush()
		w.stop()
	}
}

// Write takes a line, or drops it. It returns at once, and never an error.
func (w *logWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size+len(p) > logQueueMax {
		w.lost++
		return len(p), nil
	}
	w.reportDropped()
	w.push(logLine{text: bytes.Clone(p), lines: 1})
	return len(p), nil
}

// setFormat makes the report of dropped lines have the form of the log.
func (w *logWriter) setFormat(cfg config.Log) {
	if cfg.Format == "auto" && print.IsTerminal(w) {
		cfg.Format = "console"
	}
	var b bytes.Buffer // guarded by mu
	log := newLogger(&b, cfg)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report = func(lines int) []byte {
		b.Reset()
		log.Warn("lines are missing here: nobody read stderr", "lines", lines)
		return bytes.Clone(b.Bytes())
	}
}

// reportDropped puts the report of dropped lines into the queue, in their place. The caller holds
// mu.
func (w *logWriter) reportDropped() {
	if w.lost == 0 {
		return
	}
	w.push(logLine{text: w.report(w.lost), lines: w.lost})
	w.lost = 0
}

// push appends a line to the queue. The caller holds mu.
func (w *logWriter) push(l logLine) {
	if w.done {
		return
	}
	w.queue = append(w.queue, l)
	w.size += len(l.text)
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// next takes the first line from the queue.
func (w *logWriter) next() (logLine, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil
		return logLine{}, false
	}
	l := w.queue[0]
	w.queue = w.queue[1:]
	w.size -= len(l.text)
	return l, true
}

// run writes until stop. Lines that cannot be written count as dropped; after a success the end of
// the queue has their report.
func (w *logWriter) run() {
	for range w.more {
		for l, ok := w.next(); ok; l, ok = w.next() {
			if l.mark != nil {
				close(l.mark)
				continue
			}
			_, err := w.out.Write(l.text)
			w.mu.Lock()
			if err != nil {
				w.lost += l.lines
			} else if len(w.queue) == 0 {
				w.reportDropped()
			}
			w.mu.Unlock()
		}
	}
}

// flush waits until all earlier lines are written, but not for longer than logFlush.
func (w *logWriter) flush() {
	mark := make(chan struct{})
	w.mu.Lock()
	w.push(logLine{mark: mark})
	w.mu.Unlock()
	select {
	case <-mark:
	case <-time.After(logFlush):
	}
}

// stop ends the goroutine once all lines are written. Later lines are lost: nodes may still run
// when a program ends at once.
func (w *logWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	close(w.more)
}
