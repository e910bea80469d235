package redisconn_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// nextToken is the token rule in Go: the slow twin of token.lua.
func nextToken(t int64, r string, now int64, rid string, guard int64) int64 {
	if r != "" && r == rid {
		return max(t+1, now)
	}
	return max(t+1_000_000, now+guard)
}

var tokenProbe = redisconn.NewScript("token probe", redisconn.TokenLua+`
local t, r = ARGV[1] ~= '' and ARGV[1], ARGV[2] ~= '' and ARGV[2]
return next_token(t, r, tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]))`)

func TestTokenRule(t *testing.T) {
	const now = int64(1_763_726_400_123_456) // a November day of 2025
	const guard = int64(redisconn.TokenGuardMicros)
	type in struct {
		t     int64
		r     string
		now   int64
		rid   string
		guard int64
	}
	named := map[string]in{
		"first ever":                     {0, "", now, "r1", guard},
		"next, the clock is past":        {now - 5, "r1", now, "r1", guard},
		"next, same microsecond":         {now, "r1", now, "r1", guard},
		"clock stepped back":             {now + 70_000_000, "r1", now, "r1", guard},
		"new run_id":                     {now - 5, "r1", now, "r2", guard},
		"new run_id, clock behind":       {now + 70_000_000, "r1", now, "r2", guard},
		"state of an older version":      {now, "", now, "r1", guard},
		"no run_id to be had":            {now, "", now, "", guard},
		"last digits":                    {1_763_726_460_123_457, "r1", 1, "r1", guard},
		"near the end of exact integers": {1<<53 - 2, "r1", 1, "r1", guard},
	}
	bothServers(t, func(t *testing.T, client *redis.Client) {
		check := func(name string, c in) {
			t.Helper()
			last := ""
			if c.t != 0 {
				last = strconv.FormatInt(c.t, 10)
			}
			got, err := tokenProbe.Run(t.Context(), client, nil, last, c.r, c.now, c.rid, c.guard).Text()
			want := fmt.Sprint(nextToken(c.t, c.r, c.now, c.rid, c.guard))
			if err != nil || got != want {
				t.Errorf("%s: %+v: got %q, %v; want %s", name, c, got, err, want)
			}
		}
		for name, c := range named {
			check(name, c)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			at := now + rng.Int64N(1<<40)
			check("random", in{max(at+rng.Int64N(4e8)-2e8, 1), []string{"", "r1", "r2"}[rng.IntN(3)], at, []string{"r1", "r2"}[rng.IntN(2)], rng.Int64N(2 * guard)})
		}
	})
}

func TestServerClockAndID(t *testing.T) {
	s := redisconn.NewScript("clock", redisconn.TokenLua+`
return {string.format('%.0f', server_micros()), server_id()}`)
	bothServers(t, func(t *testing.T, client *redis.Client) {
		before := time.Now().UnixMicro()
		got, err := s.Run(t.Context(), client, nil).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		micros, err := strconv.ParseInt(got[0], 10, 64)
		if err != nil || micros < before || micros > time.Now().UnixMicro() {
			t.Errorf("server_micros is %s, %v; it is %d", got[0], err, before)
		}
		info, err := client.InfoMap(t.Context(), "replication").Result()
		if want := info["Replication"]["master_replid"]; err != nil || len(want) != 40 || got[1] != want {
			t.Errorf("server_id is %q; INFO replication says %q, %v", got[1], want, err)
		}
	})
}

// TestServerIDOfAReplica: a replica has no server id, and a promoted replica has a new one, each
// time.
func TestServerIDOfAReplica(t *testing.T) {
	ask := redisconn.NewScript("id", redisconn.TokenLua+"return server_id()\n")
	master, replicas := redistest.StartReplicas(t, 1)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client, known := replicas[0].Client(t), map[string]bool{}
	id := func(role string) string {
		t.Helper()
		got, err := ask.Run(t.Context(), client, nil).Text()
		if err != nil || role == "replica" && got != role || role == "master" && (len(got) != 40 || known[got]) {
			t.Errorf("the id of a %s is %q, %v; known before: %v", role, got, err, known)
		}
		return got
	}
	for range 2 {
		id("replica")
		if err := client.ReplicaOf(t.Context(), "no", "one").Err(); err != nil {
			t.Fatal(err)
		}
		known[id("master")] = true
		if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
