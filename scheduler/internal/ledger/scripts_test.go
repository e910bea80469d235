package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// TestTokensGrow: whatever happens to the server between two grants.
func TestTokensGrow(t *testing.T) {
	const start = (noon + 600_000) * 1000 // µs
	for name, c := range map[string]struct {
		us     int64 // the clock at the second grant
		server string
		flush  bool
		want   locking.Token // the second token; the first is start + 60 s
	}{
		"same microsecond":                 {start, "aaaaaaaaaaaa", false, start + 60_000_001},
		"a day later":                      {start + 86_400_000_000, "aaaaaaaaaaaa", false, start + 86_400_000_000},
		"an hour back":                     {start - 3_600_000_000, "aaaaaaaaaaaa", false, start + 60_000_001},
		"another server":                   {start, "bbbbbbbbbbbb", false, start + 61_000_000},
		"another server, 5 s later":        {start + 5_000_000, "bbbbbbbbbbbb", false, start + 65_000_000},
		"another server, an hour back":     {start - 3_600_000_000, "bbbbbbbbbbbb", false, start + 61_000_000},
		"everything lost, a while later":   {start + 1_000_000, "aaaaaaaaaaaa", true, start + 61_000_000},
		"everything lost with the server":  {start + 1_000_000, "bbbbbbbbbbbb", true, start + 61_000_000},
		"a server that hides its identity": {start + 1, "", false, start + 61_000_000},
		"an identity that agrees for long": {start, "aaaaaaaaaaaabbbb", false, start + 61_000_000},
		"the clock passes the guard":       {start + 60_000_002, "aaaaaaaaaaaa", false, start + 60_000_002},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.clock(t, start, "aaaaaaaaaaaa")
				first := r.want(t, Granted, tickClaim("a", "r1", 1)).Token
				r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
				r.clock(t, c.us, c.server)
				if c.flush {
					if err := r.client.FlushAll(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					r.clock(t, noon*1000, c.server)
					r.create(t, "a")
					r.clock(t, c.us, c.server)
				}
				if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t1"}); err != nil { // due at any time
					t.Fatal(err)
				}
				second := r.want(t, Granted, pendingClaim("a", "t1")).Token
				if first != start+60_000_000 || second != c.want || second <= first {
					t.Errorf("tokens %d and %d, want %d and %d", first, second, start+60_000_000, c.want)
				}
			})
		})
	}
}

// TestShippedScripts: the scripts as they ship, with the servers' own clocks and identities.
func TestShippedScripts(t *testing.T) {
	check := func(t *testing.T, client *redis.Client) {
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		led := must(Join(t.Context(), client, Config{Partitions: 1}))
		before, runID, err := led.Time(t.Context())
		if err != nil || len(runID) != 40 {
			t.Fatalf("run_id %q, %v", runID, err)
		}
		r := &rig{client: client, led: led, now: before.UnixMilli()}
		r.create(t, "a") // its tick is long past
		a := r.want(t, Granted, tickClaim("a", "r1", 1))
		after, _, err := led.Time(t.Context())
		if low, high := before.UnixMicro()+60_000_000, after.UnixMicro()+60_000_000; err != nil || a.Token < low || a.Token > high {
			t.Errorf("token %d, want it between %d and %d", a.Token, low, high)
		}
		record := client.HGet(t.Context(), led.keys[0].jobs, "a").Val()
		if want := fmt.Sprintf("|%d|%s|r1|", a.Token, runID); !strings.Contains(record, want) {
			t.Errorf("entry %q, want %q in it", record, want)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.sound(t)
		if _, err := led.Claim(t.Context(), node, after.Add(-time.Minute).UnixMilli(), []Claim{tickClaim("a", "r2", 2)}); failed(err) == "" {
			t.Error("a claim a minute off was answered")
		}
	}
	t.Run("redis-server", func(t *testing.T) { check(t, server.Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		_, client := redistest.StartEmbedded(t)
		check(t, client)
	})
}

// TestNoMemoryLeft: a Redis that takes no more writes refuses additions, and then the call has done
// nothing at all; when it has memory again the same call does it all.
func TestNoMemoryLeft(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	ctx := t.Context()
	r.chainOf(t, "a", "follower")
	for _, job := range []string{"free", "back", "crash"} {
		r.create(t, job)
	}
	r.pass(t, time.Minute)
	for _, job := range []string{"a", "back", "crash"} {
		r.want(t, Granted, attempts(2, tickClaim(job, job+"-1", 1)))
	}
	must(r.led.Trigger(ctx, "free", Trigger{Run: "t"}))
	must(r.led.Trigger(ctx, "free", Trigger{Run: "u"}))
	r.pass(t, ttl+time.Millisecond)
	for name, call := range map[string]func() error{
		"settle": func() error {
			return without(r.led.Settle(ctx, []Report{{Job: "a", Run: "a-1", Outcome: jobs.OutcomeFailed, Output: []byte("x")}}))
		},
		"unclaim": func() error { return without(r.led.Unclaim(ctx, []Return{{Job: "back", Run: "back-1"}})) },
		"reap": func() error {
			return without(r.led.Reap(ctx, r.now, r.epoch(), []Run{{Job: "crash", ID: "crash-1"}}))
		},
		"cancel": func() error { return without(r.led.Cancel(ctx, "free", "u", "ann", "")) },
		"claim": func() error {
			return without(r.led.Claim(ctx, node, r.now, []Claim{pendingClaim("free", "t"), passing("back", "r", 5, late(2, 4))}))
		},
	} {
		r.unchanged(t, name+", refused,", func() {
			r.client.ConfigSet(ctx, "maxmemory", "1")
			if err := call(); err == nil {
				t.Errorf("%s is answered without memory", name)
			}
			r.client.ConfigSet(ctx, "maxmemory", "0")
		})
		if err := call(); err != nil {
			t.Errorf("%s, with memory: %v", name, err)
		}
	}
	r.sound(t)
}
