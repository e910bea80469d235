package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

// TestAnotherKindOfRedis expects a fault of the configuration, with the remedy, where the Redis
// that answers is of another kind than the address: no repetition helps.
func TestAnotherKindOfRedis(t *testing.T) {
	t.Parallel()
	one, c := redistest.Start(t).Addr(), redistest.StartCluster(t)
	home, err := c.Master(t.Context(), "{escapement}:control")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if s.Addr() == home.Addr() {
			continue // the key of the first request is there
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
		{"generations", "list"}, {"jobs", "list"}, {"run", "--config", testkit.Write(t, secondly([]string{"a"}, ""))},
		{"move", "plan", "--from", url, "--to", "redis://127.0.0.1:1"},
	} {
		if code, _, stderr := cmdtest.Call(env, "", args...); code != command.ExitConfig || !strings.Contains(stderr, want) {
			t.Errorf("%s %v: exit %d, %s; want %q", url, args, code, stderr, want)
		}
	}
}

// TestFirstContact: a node and every tool have the same words for an unusable Redis, and the same
// exit code.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	_, replicas := redistest.StartReplicas(t, 1)
	web, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	t.Cleanup(secure.Close)
	file := t.TempDir() + "/backup"
	const nodes, tools = "run", "jobs list|nodes list|backup FILE|ledger verify|move plan --to redis://127.0.0.1:1"
	for name, c := range map[string]struct {
		url      string
		commands string
		code     int
		want     string
	}{
		"a replica without the namespace": {"redis://" + replicas[0].Addr(), nodes, command.ExitUnreachable, "Redis at ADDR is a replica, which takes no writes"},
		"a replica, for a lock":           {"redis://" + replicas[0].Addr(), "lock a -- true", command.ExitUnreachable, "Redis at ADDR is a replica, which takes no writes"},
		"HTTP":                            {"redis://" + web.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "what listens at ADDR speaks HTTP, and is no Redis: correct the port or the host"},
		"an unknown authority":            {"rediss://" + secure.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "Redis at ADDR has a certificate of an authority that this machine does not know: name the authority's certificate"},
		"TLS, called without it":          {"redis://" + secure.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "Redis at ADDR speaks TLS: write rediss and not redis"},
	} {
		_, addr, _ := strings.Cut(c.url, "://")
		env := []string{"ESCAPEMENT_REDIS_URL=" + c.url + "?dial_timeout=1m&read_timeout=1m", "ESCAPEMENT_HTTP_LISTEN="} // a handshake on a busy machine takes over a second
		for line := range strings.SplitSeq(c.commands, "|") {
			args := strings.Fields(strings.ReplaceAll(line, "FILE", file))
			if line == nodes {
				args = append(args, "--config", testkit.Write(t, secondly([]string{"a"}, "")))
			}
			code, stdout, stderr := cmdtest.Call(env, "", args...)
			if want := strings.ReplaceAll(c.want, "ADDR", addr); code != c.code || !strings.Contains(stderr, want) {
				t.Errorf("%s, %s: exit %d, %s%s\nwant %d, %s", name, line, code, stdout, stderr, c.code, want)
			}
		}
	}
}
