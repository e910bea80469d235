package lane

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A grant of an earlier request, whose answer never came, is older than the batch that is answered
// with it: the deadline must not count from that batch (P4).
func TestLeaseStartOfAnEarlierGrant(t *testing.T) {
	const ttl = 10 * time.Second
	asked := time.Now()
	for name, c := range map[string]struct {
		sent, left, want time.Duration // sent and want: after the first request
	}{
		"granted to this request":                   {0, ttl, 0},
		"the answer came to a later copy":           {3 * time.Second, 8 * time.Second, 0},
		"granted to a request 4 s before the batch": {0, 6 * time.Second, -4 * time.Second},
		"lapsed": {time.Second, 0, -9 * time.Second},
	} {
		b := &work.Batch{FirstSent: asked, LastSent: asked.Add(c.sent)}
		if got := leaseStart(b, ttl, claim.Answer{Left: c.left}); !got.Equal(asked.Add(c.want)) {
			t.Errorf("%s: counts from %s after the batch was first sent; want %s", name, got.Sub(asked), c.want)
		}
	}
}
