package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// MaxOutput is how many bytes of a run's output are stored: the last.
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

// MaxResult is the largest result of a run, in bytes; the results of all upstreams of a job fit
// into one payload.
const MaxResult = 4 << 10

// SetResult keeps data, JSON of at most MaxResult bytes, for the jobs that follow this one: when
// the run succeeds, data is the payload of their runs of the tick. The last call of the last try
// counts. Data that cannot be kept is a *FieldError, and so is a result of a shard: the tick of
// several shards has no result.
func (r *Run) SetResult(data []byte) error {
	bad := func(format string, args ...any) error {
		return &FieldError{Field: "result", Msg: fmt.Sprintf(format, args...)}
	}
	switch text := compact(data); {
	case r.info.Shards > 1:
		return bad("a shard has none; store it elsewhere, under the tick and the shard")
	case !json.Valid(data) || !utf8.Valid(data):
		return bad("is no JSON in UTF-8")
	case len(text) > MaxResult:
		return bad("%d bytes are more than %d; store it elsewhere and pass its address", len(text), MaxResult)
	default:
		own := slices.Clone(text)
		r.result.Store(&own)
		return nil
	}
}

// Result returns the data of SetResult; nil without.
func (r *Run) Result() []byte {
	if p := r.result.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}
