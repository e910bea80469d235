package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

// TestRunWithSentinel runs a node that finds the master by real sentinels, and the tools beside it.
func TestRunWithSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	env := []string{
		"ESCAPEMENT_REDIS_MODE=sentinel", "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(s.Addrs(), ","), "ESCAPEMENT_REDIS_MASTER_NAME=" + s.MasterName(),
		"ESCAPEMENT_REDIS_URL=redis:///1", "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_NODE_NAME=a1",
	}
	p := cmdtest.Start(t, env, "run", "--config", testkit.Write(t, sampleJobs))
	p.Logged("run ended", `"job":"often"`)
	if said, want := p.Field("node starting", "redis"), "the master "+s.MasterName()+" of the sentinels "+strings.Join(s.Addrs(), ","); said != want {
		t.Errorf("the node says it uses %q, want %q", said, want)
	}
	if jobs := cmdtest.Decode[[]struct{ Name string }](t, env, "jobs", "list"); len(jobs) != 3 {
		t.Errorf("jobs list: %+v", jobs)
	}
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
	if runs := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--outcome", "succeeded"); len(runs) == 0 || runs[0].Node != "a1" {
		t.Errorf("runs list: %+v", runs)
	}
	if code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}

	unknown := append(slices.Clone(env), "ESCAPEMENT_REDIS_MASTER_NAME=mian")
	if code, _, stderr := cmdtest.Call(unknown, "", "jobs", "list"); code != command.ExitConfig || !strings.Contains(stderr, "ESCAPEMENT_REDIS_MASTER_NAME: the sentinels "+s.Addrs()[0]) {
		t.Errorf("a master that nobody knows: exit %d, %s", code, stderr)
	}
	cmdtest.Start(t, unknown, "run", "--config", testkit.Write(t, sampleJobs)).Exits(command.ExitConfig)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := cmdtest.Call(env, "", "jobs", "list"); code != command.ExitUnreachable || !strings.Contains(stderr, "cannot reach Redis at the master main of the sentinels "+s.Addrs()[0]) ||
		!strings.Contains(stderr, "ESCAPEMENT_REDIS_ADDRS: cannot reach") || !strings.Contains(stderr, "start it, or correct its address, or name another configuration with --config") {
		t.Errorf("no sentinel: exit %d, %s", code, stderr)
	}
}

// TestSentinelPassword uses real sentinels with a password of their own, and a master with another
// one.
func TestSentinelPassword(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	master, err := s.Master()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range s.Addrs() {
		guard(t, addr, "battery")
	}
	guard(t, master.Addr(), "hunter2")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const setting = "REDIS_SENTINEL_PASSWORD"
	mode := []string{"ESCAPEMENT_REDIS_MODE=sentinel", "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(s.Addrs(), ","), "ESCAPEMENT_REDIS_MASTER_NAME=" + s.MasterName(), "ESCAPEMENT_REDIS_URL=redis://:hunter2@/0"}
	url := []string{"ESCAPEMENT_REDIS_URL=redis+sentinel://:hunter2@" + strings.Join(s.Addrs(), ",") + "/0?master_name=" + s.MasterName()}
	wrongMaster := append(slices.Clone(mode[:3]), "ESCAPEMENT_REDIS_URL=redis://:staple@/0")
	for name, c := range map[string]struct {
		env  []string
		more string
		code int
		want string
	}{
		"none":                {mode, "", command.ExitConfig, "redis.sentinel_password: the sentinel at " + s.Addrs()[0]},
		"none, in a URL":      {url, "", command.ExitConfig, "wants a password of its own, and none is given (NOAUTH): write the sentinels' own"},
		"the master's":        {mode, "ESCAPEMENT_" + setting + "=hunter2", command.ExitConfig, "ESCAPEMENT_" + setting + ": the sentinel at " + s.Addrs()[0]},
		"right":               {mode, "ESCAPEMENT_" + setting + "=battery", command.ExitNotFound, "has never been used in the Redis at the master"},
		"right, in a file":    {mode, "ESCAPEMENT_" + setting + "_FILE=" + file, command.ExitNotFound, "has never been used in the Redis at the master"},
		"right, in the URL":   {[]string{url[0] + "&sentinel_password=battery"}, "", command.ExitNotFound, "has never been used in the Redis at the master"},
		"wrong, in the URL":   {[]string{url[0] + "&sentinel_password=staple"}, "", command.ExitConfig, "refuses the password, or the user, that is given there (WRONGPASS): write the sentinels' own"},
		"right, beside a URL": {url, "ESCAPEMENT_" + setting + "=battery", command.ExitNotFound, "has never been used in the Redis at the master"},
		"the master's wrong":  {wrongMaster, "ESCAPEMENT_" + setting + "=battery", command.ExitConfig, "ESCAPEMENT_REDIS_URL: Redis at the master main of the sentinels"},
	} {
		code, stdout, stderr := cmdtest.Call(append(slices.Clone(c.env), c.more), "", "jobs", "list")
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s%s", name, code, stdout, stderr)
		}
		for _, secret := range []string{"hunter2", "battery", "staple"} {
			if strings.Contains(stderr, secret) {
				t.Errorf("%s: it says %s", name, secret)
			}
		}
	}
	from, other := strings.TrimPrefix(url[0], "ESCAPEMENT_REDIS_URL="), "redis://"+redistest.Start(t).Addr()
	for password, c := range map[string]struct {
		code int
		want string
	}{
		"":                           {command.ExitConfig, "ESCAPEMENT_MOVE_FROM: move plan: the sentinel at " + s.Addrs()[0]},
		"&sentinel_password=staple":  {command.ExitConfig, "(WRONGPASS): write the sentinels' own into the URL"},
		"&sentinel_password=battery": {command.ExitNotFound, "has never been used in the Redis at the master"},
	} {
		newMover(t, from+password, other).wants(c.code, c.want, "plan")
	}
}

// guard gives a server, or a sentinel, a password.
func guard(t *testing.T, addr, password string) {
	t.Helper()
	client := redis.NewClient(redistest.ClientOptions(addr))
	defer client.Close()
	if err := client.Do(t.Context(), "acl", "setuser", "default", "resetpass", ">"+password).Err(); err != nil {
		t.Fatal(err)
	}
}
