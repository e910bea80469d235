package redistest

import (
	"net"
	"sync"
)

// sendBuffer gives a synchronous pipe what a socket has: room for what was sent
// and not read yet. Without it a long pipeline deadlocks, the client still
// sending and the server already answering, each waiting for the other to read.
type sendBuffer struct {
	net.Conn

	mu     sync.Mutex
	queue  []byte
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

// Close drops what the server has not read.
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
		out := b.queue
		b.queue = nil
		b.mu.Unlock()
		if _, err := b.Conn.Write(out); err != nil {
			b.mu.Lock()
			b.err = err
			b.mu.Unlock()
			return
		}
	}
}
