package jobs

import "sync"

// MaxOutput is the size of a run's stored output in bytes: the last ones.
const MaxOutput = 64 << 10

// output keeps the last MaxOutput bytes written to it.
type output struct {
	mu   sync.Mutex
	buf  []byte
	next int // where the next byte goes, once buf is full

	total int64 // bytes written
}

// Write keeps the end of p. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	if room := MaxOutput - len(o.buf); room > 0 {
		k := min(room, len(p))
		o.buf = append(o.buf, p[:k]...)
		p = p[k:]
	}
	p = p[max(0, len(p)-MaxOutput):]
	for len(p) > 0 {
		k := copy(o.buf[o.next:], p)
		o.next = (o.next + k) % MaxOutput
		p = p[k:]
	}
	return n, nil
}

// size returns how many bytes were written.
func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// bytes returns a copy of the kept bytes, oldest first; nil when nothing was written.
func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf) == 0 {
		return nil
	}
	kept := make([]byte, 0, len(o.buf))
	kept = append(kept, o.buf[o.next:]...)
	return append(kept, o.buf[:o.next]...)
}
