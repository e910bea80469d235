package config

import (
	"testing"
	"time"
)

func TestAhead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"auto": 0, "off": -1, "1ms": time.Millisecond, "500ms": 500 * time.Millisecond} {
		if got, err := (Node{ClaimAhead: text}).Ahead(); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0s", "-1s", "501ms", "on", "5"} {
		if got, err := (Node{ClaimAhead: text}).Ahead(); err == nil {
			t.Errorf("%q is %s; want an error", text, got)
		}
	}
}
