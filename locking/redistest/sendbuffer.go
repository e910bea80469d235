package redistest

import (
	"io"
	"net"
	"sync"
)

// buffered is a synchronous pipe to the embedded server with buffers in both directions, as a socket has them. The server writes
// a long answer while it holds its lock. In a synctest bubble time stops while a goroutine waits for that lock, so a client over a
// slow network would never read.
type buffered struct {
	net.Conn             // the received bytes, and the deadlines
	out, in  *sendBuffer // to the server, and from it to the client
}

func withBuffers(server net.Conn) *buffered {
	near, far := net.Pipe()
	b := &buffered{Conn: near, out: withSendBuffer(server), in: withSendBuffer(far)}
	go func() {
		_, _ = io.Copy(b.in, server) // until either side has closed
		b.in.finish()
	}()
	return b
}

// Write takes p whole, unless the pipe has broken.
func (b *buffered) Write(p []byte) (int, error) { return b.out.Write(p) }

// Close drops unread bytes in both directions.
func (b *buffered) Close() error {
	_ = b.in.Close()
	_ = b.Conn.Close()
	return b.out.Close()
}

// sendBuffer is one direction: room for bytes that were sent and not read yet. Without it a long
// pipeline deadlocks, the client still sending and the server already answering, each waiting for
// the other to read.
type sendBuffer struct {
	net.Conn

	mu     sync.Mutex
	queue  []byte
	last   bool          // nothing more is written: the pipe is closed after the queue
	err    error         // of the pipe; every later Write returns it
	wake   chan struct{} // holds one signal: the queue is not empty
	closed chan struct{} // closed by Close; ends the pump
	once   sync.Once
}

func withSendBuffer(c net.Conn) *sendBuffer {
	b := &sendBuffer{Conn: c, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	go b.pump()
	return b
}

// Write takes p whole, unless the pipe has broken.
func (b *sendBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.queue = append(b.queue, p...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// finish closes the pipe when all written bytes have been read.
func (b *sendBuffer) finish() {
	b.mu.Lock()
	b.last = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Close drops the bytes that the other side has not read.
func (b *sendBuffer) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

func (b *sendBuffer) pump() {
	for {
		select {
		case <-b.closed:
			return
		case <-b.wake:
		}
		b.mu.Lock()
		out, last := b.queue, b.last
		b.queue = nil
		b.mu.Unlock()
		if len(out) > 0 {
			if _, err := b.Conn.Write(out); err != nil {
				b.mu.Lock()
				b.err = err
				b.mu.Unlock()
				return
			}
		}
		if last {
			_ = b.Conn.Close()
			return
		}
	}
}
