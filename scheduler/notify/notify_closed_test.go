package notify

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// A notifier whose client the program has closed ends, and does not try for ever.
func TestClientIsClosed(t *testing.T) {
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	tell := Target{Name: "t", Func: func(context.Context, Message) error { return nil }}
	n, err := New(client, Config{Targets: []Target{tell}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(t.Context()); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("Run returned %v", err)
	}
}
