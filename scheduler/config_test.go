package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// TestNewRefuses: what a node is told wrongly it says at once, all of it, and not when it runs.
func TestNewRefuses(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true}) // nobody is asked
	defer client.Close()
	for want, cfg := range map[string]scheduler.Config{
		`namespace "a b{c}"`:           {Namespace: "a b{c}"},
		"partitions -4":                {Partitions: -4},
		"partitions 1025":              {Partitions: 1025},
		`generation "x y"`:             {Generation: "x y"},
		"history keep 3":               {HistoryKeep: 3},
		"history keep_for -1h0m0s":     {HistoryKeepFor: -time.Hour},
		"history keep_for 59s":         {HistoryKeepFor: 59 * time.Second},
		"weight is 1001":               {Weight: 1001, HistoryKeep: 3},
		"max_step is 1ms and max_skew": {MaxStep: time.Millisecond},
	} {
		cfg.Name = "n1"
		_, err := scheduler.New(client, jobs.NewRegistry(), cfg)
		if err == nil || !strings.Contains(err.Error(), want) || cfg.HistoryKeep == 3 && !strings.Contains(err.Error(), "history keep 3") {
			t.Errorf("want %s: got %v", want, err)
		}
	}
	good := scheduler.Config{Name: "n1", Partitions: 1024, Generation: "2", HistoryKeep: 16, HistoryKeepFor: time.Minute}
	if _, err := scheduler.New(client, jobs.NewRegistry(), good); err != nil {
		t.Error(err)
	}
	if _, err := scheduler.NewClient(client, "a b{c}"); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("a client: %v", err)
	}
}
