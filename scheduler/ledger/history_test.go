package ledger

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// A row whose age cannot be told stays, and those behind it.
func TestShortHistoryBehindAForeignRow(t *testing.T) {
	onBoth(t, Config{Partitions: 1, Keep: 100, KeepFor: time.Hour}, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 24*time.Hour)
		if err := r.client.RPush(t.Context(), r.led.keys[0].history+"a", "2|R|newer").Err(); err != nil {
			t.Fatal(err)
		}
		for s := int64(1); s <= 10; s++ {
			r.runOne(t, "a", s)
			r.pass(t, 2*time.Hour)
		}
		if n := r.client.LLen(t.Context(), r.led.keys[0].history+"a").Val(); n != 11 {
			t.Errorf("%d rows, want all", n)
		}
	})
}

// bursts notes how many commands each pipeline has.
type bursts []int

func (p *bursts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *bursts) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *bursts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		*p = append(*p, len(cmds))
		return next(ctx, cmds)
	}
}

// Behind jobs with very many rows fewer are read at once.
func TestEachHistoryReadsPages(t *testing.T) {
	r := realRig(t, oneConfig)
	names := make([]string, historyJobs+3)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	records := make([]any, historyRows+1)
	for i := range records {
		records[i] = "none"
	}
	if err := r.client.RPush(t.Context(), r.led.keys[0].history+names[1], records...).Err(); err != nil {
		t.Fatal(err)
	}
	var seen bursts
	r.client.AddHook(&seen)
	var read []string
	foreign := 0
	if err := r.led.EachHistory(t.Context(), names, "", func(h JobRows) bool {
		read, foreign = append(read, h.Job), foreign+h.Foreign
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := (bursts{historyJobs, 1, 2}); !slices.Equal(seen, want) {
		t.Errorf("jobs for each round trip: %v, want %v", seen, want)
	}
	if !slices.Equal(read, names) || foreign != len(records) {
		t.Errorf("read %d jobs of %d, %d rows of %d", len(read), len(names), foreign, len(records))
	}
}

// After 2,000 settles nothing is larger than after 1,000.
func TestLedgerDoesNotGrow(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	sizes := func() map[string]int64 {
		out := map[string]int64{}
		for _, key := range must(r.client.Keys(t.Context(), "*").Result()) {
			switch r.client.Type(t.Context(), key).Val() {
			case "hash":
				out[key] = r.client.HLen(t.Context(), key).Val()
			case "zset":
				out[key] = r.client.ZCard(t.Context(), key).Val()
			case "list":
				out[key] = r.client.LLen(t.Context(), key).Val()
			}
		}
		return out
	}
	var after []map[string]int64
	for _, job := range []string{"a", "b"} {
		r.create(t, job)
	}
	r.pass(t, time.Hour)
	for s := int64(1); s <= 1000; s++ {
		r.runOne(t, "a", s)
		r.runOne(t, "b", s)
		if s%500 == 0 {
			after = append(after, sizes())
		}
	}
	r.sound(t)
	for key, n := range after[1] {
		if n > max(after[0][key], 16+15) || len(after[0]) != len(after[1]) {
			t.Errorf("%s has %d items after 2,000 runs, after 1,000 it had %d", key, n, after[0][key])
		}
	}
	if n := after[1][r.led.keys[0].history+"a"]; n < 16 || n > 31 {
		t.Errorf("%d rows", n)
	}
}

// TestKept: the last bytes of the output and the payload are kept beside the row, and leave with it.
func TestKept(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("|\x00\xff")}))
		r.want(t, Granted, pendingClaim("a", "t"))
		output := append([]byte("cut off"), bytes.Repeat([]byte("|\n\xff"), jobs.MaxOutput/3)...)
		output = append(output, '!')
		must(r.led.Settle(t.Context(), []Report{{Job: "a", Run: "t", Outcome: jobs.OutcomeSucceeded, Output: output}}))
		r.settle(t, Lost, "a", "t", jobs.OutcomeFailed) // writes no output over it
		got, payload, err := r.led.Kept(t.Context(), "a", "t")
		if err != nil || !bytes.Equal(got, output[len(output)-jobs.MaxOutput:]) || string(payload) != "|\x00\xff" {
			t.Errorf("kept %d bytes of output, payload %q, %v", len(got), payload, err)
		}
		if got, payload, err := r.led.Kept(t.Context(), "a", "nobody"); len(got)+len(payload) != 0 || err != nil {
			t.Errorf("of nobody: %q, %q, %v", got, payload, err)
		}
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].kept).Val(); len(left) != 0 {
			t.Errorf("left when its row is gone: %v", left)
		}
	})
}
