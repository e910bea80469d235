package doctor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// codes are the severities and codes of problems.
func codes(all []Problem) (list []string) {
	for _, p := range all {
		list = append(list, p.Severity+" "+p.Code)
	}
	return list
}

// TestServer judges servers by their INFO.
func TestServer(t *testing.T) {
	const well = "redis_version:7.2.4\nrole:master\naof_enabled:1\naof_last_write_status:ok\nrdb_last_bgsave_status:ok\nmaxmemory:0\nmaxmemory_policy:noeviction\n"
	for _, tt := range []struct{ name, change, want string }{ // want: severity and code, and behind a colon a part of the text
		{"well", "", ""},
		{"says little", "redis_version:\naof_enabled:\nrole:", ""},
		{"old", "redis_version:6.2.14", "error redis_version"},
		{"not so old", "redis_version:10.0.0", ""},
		{"replica", "role:slave", "error redis_replica"},
		{"disk", "aof_last_write_status:err", "error redis_disk"},
		{"snapshots", "aof_enabled:0\nuptime_in_seconds:100000\nserver_time_usec:1000000000000\nrdb_last_save_time:999000\nrdb_changes_since_last_save:7", "warning redis_no_appendonly: since its last snapshot"},
		{"young", "aof_enabled:0\nuptime_in_seconds:60\nserver_time_usec:1000000000000\nrdb_last_save_time:999940\nrdb_changes_since_last_save:7", "warning redis_no_appendonly: no snapshot was taken since the server started"},
		{"nothing kept", "aof_enabled:0\nuptime_in_seconds:100000\nserver_time_usec:1000000000000\nrdb_last_save_time:900000\nrdb_changes_since_last_save:7", "error redis_no_persistence"},
		{"fork", "rdb_last_bgsave_status:err", "error redis_snapshot"},
		{"policy without a limit", "maxmemory_policy:allkeys-lru", ""},
		{"evicts", "maxmemory:1000\nused_memory:10\nmaxmemory_policy:allkeys-lru", "error redis_evicts"},
		{"nearly full", "maxmemory:1000\nused_memory:950\nmem_not_counted_for_evict:20", "warning redis_nearly_full"},
		{"full", "maxmemory:1000\nused_memory:1001", "error redis_full"},
		{"counted apart", "maxmemory:1000\nused_memory:1001\nmem_not_counted_for_evict:200", ""},
		{"replicas keep up", "connected_slaves:1\nslave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=1", ""},
		{"lags", "connected_slaves:2\nslave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0\nslave1:ip=10.0.0.3,port=6379,state=online,offset=1,lag=11", "warning redis_replica_lags"},
		{"loads", "connected_slaves:1\nslave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0", "warning redis_replica_lags"},
	} {
		var l list
		s := server{addr: "a", info: fields(well + tt.change)}
		s.problems(&l)
		all := l.problems()
		want, words, _ := strings.Cut(tt.want, ": ")
		if got := strings.Join(codes(all), " "); got != want || words != "" && !strings.Contains(all[0].Text, words) {
			t.Errorf("%s: %s, want %s: %+v", tt.name, got, tt.want, all)
		}
	}
}

// TestClocks compares masters with each other, not with this machine.
func TestClocks(t *testing.T) {
	for _, tt := range []struct {
		offsets []time.Duration
		want    string
	}{
		{[]time.Duration{time.Hour}, ""},
		{[]time.Duration{time.Hour, time.Hour + 200*time.Millisecond}, ""},
		{[]time.Duration{300 * time.Millisecond, 0, 100 * time.Millisecond}, "warning redis_clocks"},
		{[]time.Duration{0, -2 * time.Second}, "error redis_clocks"},
	} {
		var l list
		var all []server
		for _, off := range tt.offsets {
			all = append(all, server{timed: true, offset: off})
		}
		clocks(append(all, server{offset: 24 * time.Hour}), &l) // whose clock could not be read
		if got := strings.Join(codes(l.problems()), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.offsets, got, tt.want)
		}
	}
}

// TestList names twenty of a kind, errors first.
func TestList(t *testing.T) {
	var l list
	for range listedMost + 5 {
		l.add(Problem{Code: "b", Severity: Warning})
	}
	l.add(Problem{Code: "a", Severity: Error})
	l.add(Problem{Code: "b", Severity: Error})
	l.add(Problem{Code: "a", Severity: Error})
	all := l.problems()
	if got := strings.Join(codes(all[:4]), ", "); got != "error a, error a, error b, warning b" {
		t.Error(got)
	}
	if last := all[len(all)-1]; len(all) != 3+listedMost+1 || last.Count != 5 || last.Text != "and 5 more like these" {
		t.Errorf("%d, and last %+v", len(all), last)
	}
}

// TestRights: each right that a user lacks is named, also the right to INFO; no examined command is
// carried out, and the user of docs/operations.md lacks nothing.
func TestRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	as := func(rights ...string) *redis.Client {
		args := []any{"acl", "setuser", "u", "reset", "on", ">p"}
		for _, r := range rights {
			args = append(args, r)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "u", Password: "p", MaxRetries: -1, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	text, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "\nuser escapement on >PASSWORD ")
	line, _, _ = strings.Cut(line, "\n")
	all := strings.Fields(line)
	for _, tt := range []struct {
		name   string
		rights []string
		want   string
	}{
		{"all that it needs", all, ""},
		{"the default user", []string{"+@all", "~*", "&*"}, ""},
		{"no HGET, HKEYS and INFO", append(slices.Clone(all), "-hget", "-hkeys", "-info"), "+hget +hkeys +info"},
		{"other keys", append(slices.Clone(all), "resetkeys", "~other:*"), "~{escapement:* ~{escapement}:*"},
		{"no channels", append(slices.Clone(all), "resetchannels"), "&escapement:lock-call:* &{escapement:lock:*"},
		{"no transactions", append(slices.Clone(all), "-multi"), "+multi"},
	} {
		if got := strings.Join(denied(t.Context(), as(tt.rights...), "escapement"), " "); got != tt.want {
			t.Errorf("%s: lacks %q, want %q", tt.name, got, tt.want)
		}
	}
	if n := admin.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
	granted := make(map[string]bool)
	for line := range strings.Lines(needed) {
		granted["+"+strings.Fields(line)[0]] = true
	}
	for _, right := range all {
		if strings.HasPrefix(right, "+") && !granted[right] && !slices.Contains([]string{"+auth", "+hello", "+select", "+multi", "+exec", "+subscribe", "+unsubscribe"}, right) {
			t.Errorf("%s is granted in docs/operations.md and not asked about", right)
		}
	}
	var l list
	examineServers(t.Context(), as(append(slices.Clone(all), "-info")...), "escapement", &l)
	if got := strings.Join(codes(l.problems()), " "); got != "error redis_permissions warning redis_not_looked_at" {
		t.Errorf("without INFO: %s", got)
	}
}

// A server that is no Redis is named so, with the cure, and not by the client's words.
func TestServerThatIsNoRedis(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := redis.NewClient(redistest.ClientOptions(server.Listener.Addr().String()))
	defer client.Close()
	var l list
	examineServers(t.Context(), client, "escapement", &l)
	all := l.problems()
	if len(all) != 1 || !strings.Contains(all[0].Text, "speaks HTTP, and is no Redis") || all[0].Cure != "correct the port or the host" {
		t.Errorf("got %+v", all)
	}
}

// TestCluster: slots without a master are found, and all is well with all of them.
func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t)
	client := c.Client(t)
	lost := func() bool {
		var l list
		examineServers(t.Context(), client, "escapement", &l)
		return slices.Contains(codes(l.problems()), "error redis_slots")
	}
	if lost() {
		t.Error("slots are missing in a whole Cluster")
	}
	_ = client.ForEachMaster(context.WithoutCancel(t.Context()), func(ctx context.Context, m *redis.Client) error {
		return m.Do(ctx, "cluster", "delslots", 1).Err() // two of three do not have it
	})
	if !lost() {
		t.Error("a slot is missing, and not found")
	}
}
