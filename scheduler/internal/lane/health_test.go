package lane

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// redisAnswer is an error reply of a server.
type redisAnswer string

func (a redisAnswer) Error() string { return string(a) }
func (a redisAnswer) RedisError()   {}

// The fault that keeps a node from Redis is logged, and is in /readyz, with the address and a cure:
// such as that a Cluster has moved its slots away.
func TestHealthNamesTheCure(t *testing.T) {
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer client.Close()
	for reply, want := range map[string]string{
		"MOVED 3999 127.0.0.1:6381":                                        "Redis at 127.0.0.1:1 is a server of a Cluster: write redis+cluster://127.0.0.1:1/",
		"READONLY You can't write against a read only replica.":            "Redis at 127.0.0.1:1 is a replica, which takes no writes",
		"NOPERM this user has no permissions to run the 'evalsha' command": "lacks the command evalsha",
		"NOPERM No permissions to access a key":                            "lacks the keys ~{ns}:*",
		"ERR max number of clients reached":                                "raise its maxclients",
		"WRONGPASS invalid username-password pair or user is disabled.":    "refuses the password",
	} {
		var text bytes.Buffer
		h := NewHealth(client, "ns", func(error) {}, slog.New(slog.NewTextHandler(&text, nil)))
		h.Fail(roleSweep, redisconn.Classify("sweep", redisAnswer(reply)))
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is logged as\n%s", reply, text.String())
		}
		if err := h.Err(); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, redisAnswer(reply)) {
			t.Errorf("%s is %v", reply, err)
		}
	}
}

// A closed client is noticed; a client with one closed connection is not taken for closed.
func TestHealthNoticesAClosedClient(t *testing.T) {
	closed := func(h *Health) bool {
		select {
		case <-h.ClientClosed():
			return true
		default:
			return false
		}
	}
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	h := NewHealth(client, "", func(error) {}, slog.New(slog.DiscardHandler))
	if h.Fail(roleSweep, redisconn.Classify("sweep", redis.ErrClosed)); closed(h) {
		t.Error("the client is open")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if h.Fail(roleSweep, redisconn.Classify("sweep", client.Ping(t.Context()).Err())); !closed(h) {
			t.Error("the client is closed")
		}
	}
}
