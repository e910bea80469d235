package scheduler

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// sayAgain is how often a trouble that lasts is logged.
const sayAgain = 10 * time.Second

// health is the node's word on Redis: every role reports to it, it logs changes once, and Ready
// asks it.
type health struct {
	log *slog.Logger

	mu    sync.Mutex
	err   error // nil while Redis answers
	since time.Time
	said  time.Time
}

func (h *health) fail(err error) {
	h.mu.Lock()
	first := h.err == nil
	now := time.Now()
	if first {
		h.since = now
	}
	h.err = err
	say := first || now.Sub(h.said) >= sayAgain
	if say {
		h.said = now
	}
	since := h.since
	h.mu.Unlock()
	if !say {
		return
	}
	if errors.Is(err, locking.ErrUnreachable) {
		h.log.Warn("Redis does not answer; nothing is claimed until it does, and what runs ends before its lease", "error", err,
			"for", now.Sub(since).Round(time.Millisecond))
		return
	}
	h.log.Error("Redis refused a call", "error", err)
}

func (h *health) ok() {
	h.mu.Lock()
	was := h.err
	since := h.since
	h.err = nil
	h.mu.Unlock()
	if was != nil {
		h.log.Info("Redis answers again", "after", time.Since(since).Round(time.Millisecond))
	}
}

func (h *health) trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}
