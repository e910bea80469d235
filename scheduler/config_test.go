package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A node has read its registry and its settings when New returns: later additions are refused, and
// later changes are not the node's.
func TestNewReadsOnce(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true}) // no server is called
	defer client.Close()
	reg := jobs.NewRegistry()
	work := func(context.Context, *jobs.Run) error { return nil }
	if _, err := scheduler.New(client, reg, scheduler.Config{Name: "n1", Weight: -1}); err == nil {
		t.Fatal("a weight of -1")
	}
	if err := reg.Add(jobs.Job{Name: "before", Schedule: "@hourly", Func: work}); err != nil {
		t.Fatal(err) // no node has read the registry
	}
	labels := map[string]string{"zone": "a"}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "n1", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	labels["zone"] = "" // which no node may have
	late := jobs.Job{Name: "late", Schedule: "@hourly", Func: work}
	for what, err := range map[string]error{
		"a job": reg.Add(late), "a handler": reg.Handle("late", work),
		"a typed handler": jobs.HandleTyped(reg, "typed", func(context.Context, *jobs.Run, struct{}) error { return nil }),
	} {
		if !errors.Is(err, jobs.ErrFrozen) || !strings.Contains(err.Error(), "node n1") {
			t.Errorf("%s after New: %v", what, err)
		}
	}
	if err := node.Add(late); err != nil {
		t.Error(err)
	}
	if _, err := scheduler.New(client, reg, scheduler.Config{Name: "n2"}); err != nil {
		t.Errorf("a second node with the registry: %v", err)
	}
}

// TestNewRefuses: New returns all faults of the settings at once, before the node runs.
func TestNewRefuses(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true}) // no server is called
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
	if _, err := ops.New(client, "a b{c}"); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("a client: %v", err)
	}
}
