package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// outletMax is how much is held for a reader that is slow, in bytes.
	outletMax = 1 << 20
	// outletFlush is how long the end of a program waits for that reader.
	outletFlush = time.Second
)

// logWriter is the stderr of a program that goes on when nobody reads it. Its Write keeps nobody waiting: one goroutine writes the
// lines, what does not fit meanwhile is dropped, and where lines are missing it says how many.
type logWriter struct {
	out  io.Writer
	more chan struct{} // holds one signal: there is something to write

	mu    sync.Mutex
	queue []logLine
	size  int                    // of the queue, in bytes
	lost  int                    // lines that nobody will read and of which nothing has been said
	done  bool                   // stopped
	tell  func(lines int) []byte // how that is said
}

// logLine is a line that waits, or a mark.
type logLine struct {
	text  []byte
	lines int           // that are lost when it cannot be written
	mark  chan struct{} // of flush, closed when all before it has been written; then there is no text
}

// newLogWriter starts a writer, which lives until stop: mostly as long as the program.
func newLogWriter(out io.Writer) *logWriter {
	o := &logWriter{out: out, more: make(chan struct{}, 1)}
	o.tell = func(lines int) []byte {
		return fmt.Appendf(nil, "escapement: %d lines are missing here: nobody read stderr\n", lines)
	}
	go o.run()
	return o
}

// outlive makes the process go on when nobody reads its stdout or stderr: a reader that hangs keeps nobody waiting, and one that
// is gone does not end it. Commands that it starts end by SIGPIPE as ever, which they would not if it were ignored here.
func (a *app) outlive() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if a.outlet == nil {
		a.outlet = newLogWriter(a.stderr)
		a.stderr = a.outlet
	}
}

// lastWords waits, at the end of the program, until its words are out, if somebody reads them.
func (a *app) lastWords() {
	if a.outlet != nil {
		a.outlet.flush()
		a.outlet.stop()
	}
}

// Write takes a line, or drops it. It returns at once, and never an error.
func (o *logWriter) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+len(p) > outletMax {
		o.lost++
		return len(p), nil
	}
	o.reportDropped()
	o.push(logLine{text: bytes.Clone(p), lines: 1})
	return len(p), nil
}

// write makes the writer say in the form of the log how many lines are missing.
func (o *logWriter) write(cfg Log) {
	if cfg.Format == "auto" && isTerminal(o) {
		cfg.Format = "console"
	}
	var b bytes.Buffer // guarded by mu
	log := newLogger(&b, cfg)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell = func(lines int) []byte {
		b.Reset()
		log.Warn("lines are missing here: nobody read stderr", "lines", lines)
		return bytes.Clone(b.Bytes())
	}
}

// reportDropped puts the word of lost lines into the queue, where they are missing. The caller holds mu.
func (o *logWriter) reportDropped() {
	if o.lost == 0 {
		return
	}
	o.push(logLine{text: o.tell(o.lost), lines: o.lost})
	o.lost = 0
}

// push puts a line behind the others. The caller holds mu.
func (o *logWriter) push(l logLine) {
	if o.done {
		return
	}
	o.queue = append(o.queue, l)
	o.size += len(l.text)
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// next takes the first line from the queue.
func (o *logWriter) next() (logLine, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue = nil
		return logLine{}, false
	}
	l := o.queue[0]
	o.queue = o.queue[1:]
	o.size -= len(l.text)
	return l, true
}

// run writes until stop. What cannot be written is lost; when something could, the end of the queue is a time to say so.
func (o *logWriter) run() {
	for range o.more {
		for l, ok := o.next(); ok; l, ok = o.next() {
			if l.mark != nil {
				close(l.mark)
				continue
			}
			_, err := o.out.Write(l.text)
			o.mu.Lock()
			if err != nil {
				o.lost += l.lines
			} else if len(o.queue) == 0 {
				o.reportDropped()
			}
			o.mu.Unlock()
		}
	}
}

// flush waits until what was written before is out, but not for longer than outletFlush.
func (o *logWriter) flush() {
	mark := make(chan struct{})
	o.mu.Lock()
	o.push(logLine{mark: mark})
	o.mu.Unlock()
	select {
	case <-mark:
	case <-time.After(outletFlush):
	}
}

// stop ends the goroutine once it has written everything. What is written afterwards is lost: nodes may still run when a program
// ends at once.
func (o *logWriter) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	close(o.more)
}
