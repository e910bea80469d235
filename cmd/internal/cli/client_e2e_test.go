package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
)

// TestAnotherKindOfRedis wants a fault of the configuration, with what to write, where the Redis that answers is of another
// kind than the address says: no repetition helps.
func TestAnotherKindOfRedis(t *testing.T) {
	t.Parallel()
	one, c := redistest.Start(t).Addr(), redistest.StartCluster(t)
	home, err := c.Master(t.Context(), "{escapement}:control")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if s.Addr() == home.Addr() {
			continue // what is asked first is there
		}
		wantMistaken(t, "redis://"+s.Addr(), "Redis at "+s.Addr()+" is a server of a Cluster: write redis+cluster://"+s.Addr()+"/ (or redis.mode: cluster)")
		break
	}
	wantMistaken(t, "redis+cluster://"+one+"/", "Redis at "+one+" is one server, and no Cluster: write redis://"+one+"/0")
	wantMistaken(t, "redis+sentinel://"+one+"/0?master_name=main", "is no sentinel: write the sentinels' own addresses")
}

func wantMistaken(t *testing.T, url, want string) {
	t.Helper()
	env := []string{"ESCAPEMENT_REDIS_URL=" + url, "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	for _, args := range [][]string{
		{"generations", "list"}, {"jobs", "list"}, {"run", "--config", write(t, secondly([]string{"a"}, ""))},
		{"move", "plan", "--from", url, "--to", "redis://127.0.0.1:1"},
	} {
		if code, _, stderr := call(env, "", args...); code != exitConfig || !strings.Contains(stderr, want) {
			t.Errorf("%s %v: exit %d, %s; want %q", url, args, code, stderr, want)
		}
	}
}
