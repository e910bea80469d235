package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
)

// TestEvictionIsToldOf: a node and a command under a lock say so when Redis may drop what they rely on.
func TestEvictionIsToldOf(t *testing.T) {
	t.Parallel()
	const words = "allkeys-lru"
	redis := redistest.Start(t)
	if code, _, stderr := call(at(redis), "", "lock", "a", "--", "true"); code != exitDone || stderr != "" {
		t.Errorf("with the defaults: exit %d, %s", code, stderr)
	}
	for name, value := range map[string]string{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"} {
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := call(at(redis), "", "lock", "a", "--", "true"); code != exitDone || !strings.Contains(stderr, words) {
		t.Errorf("lock: exit %d, %s", code, stderr)
	}
	p := nodeOf(t, append(at(redis), "ESCAPEMENT_HTTP_LISTEN="), "n1", secondly([]string{"a"}, ""))
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	if !strings.Contains(p.stderr.text(), words) {
		t.Errorf("run: %s", p.stderr.text())
	}
}
