package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestDoctor finds nothing that must be done, and then a policy by which Redis drops keys, over
// Redis and over a node's API alike.
func TestDoctor(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, sampleJobs)
	node := []string{"ESCAPEMENT_API=" + p.field("node starting", "http")}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := call(env, "", "doctor")
		if code != exitDone || !strings.Contains(stdout, "warning  node a1: it has no revision") || !strings.Contains(stdout, "\n         cure: build from a checkout") || !strings.Contains(stderr, "no error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
	}
	for _, setting := range []string{"maxmemory 1gb", "maxmemory-policy allkeys-lru"} {
		name, value, _ := strings.Cut(setting, " ")
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := call(env, "", "doctor")
		if code != exitFailed || !strings.HasPrefix(stdout, "error    server "+redis.Addr()+": it drops keys") || !strings.Contains(stderr, "1 error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
		code, stdout, _ = call(env, "", "doctor", "-o", "json")
		if code != exitFailed || !strings.Contains(stdout, `"code": "redis_evicts"`) {
			t.Errorf("exit %d, %s", code, stdout)
		}
	}
	if code, stdout, _ := call(append(env, "ESCAPEMENT_NAMESPACE=other"), "", "doctor"); code != exitFailed || !strings.Contains(stdout, "error    namespace other: no node has ever run") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, _, _ := call([]string{"ESCAPEMENT_REDIS_URL=redis://" + closedPort(t)}, "", "doctor"); code != exitUnreachable {
		t.Errorf("without Redis: exit %d", code)
	}
}

// TestProblemText has one cure below what it is for, and nothing that moves a cursor.
func TestProblemText(t *testing.T) {
	got := problemText([]ops.Problem{
		{Code: "a", Severity: "error", Kind: "job", On: "x", Text: "one\x1b", Cure: "do it"},
		{Code: "a", Severity: "error", Kind: "job", On: "y", Text: "two", Cure: "do it"},
		{Code: "a", Severity: "error", Kind: "job", Text: "and 3 more", Cure: "do it", Count: 3},
		{Code: "b", Severity: "warning", Kind: "node", On: "n", Text: "three", Cure: "wait"},
	})
	want := "error    job x: one\\x1b\nerror    job y: two\nerror    and 3 more\n         cure: do it\nwarning  node n: three\n         cure: wait\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
