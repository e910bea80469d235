package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/move"
)

// mover is who moves a namespace from one Redis to another.
type mover struct {
	t   *testing.T
	env []string
}

func newMover(t *testing.T, from, to string) mover {
	return mover{t, []string{"ESCAPEMENT_MOVE_FROM=" + from, "ESCAPEMENT_MOVE_TO=" + to}}
}

// wants carries out a step and compares the exit code and a part of what is said.
func (m mover) wants(code int, words string, args ...string) {
	m.t.Helper()
	got, stdout, stderr := call(m.env, "", append([]string{"move"}, args...)...)
	if got != code || !strings.Contains(stderr, words) || code != exitDone && stdout != "" && args[0] != "plan" {
		m.t.Errorf("move %v: exit %d, %s%s; want %d and %q", args, got, stdout, stderr, code, words)
	}
}

// clusterURL is a Cluster as --to takes it.
func clusterURL(c *redistest.Cluster) string {
	return "redis+cluster://" + strings.Join(c.Options().Addrs[:3], ",") + "/"
}

// TestNodesFollowToACluster moves a namespace from one server to a Cluster under three nodes that know where it goes:
// the same processes go on there, and each tick runs once.
func TestNodesFollowToACluster(t *testing.T) {
	from, to := redistest.Start(t), redistest.StartCluster(t)
	there := clusterURL(to)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + from.Addr(), "ESCAPEMENT_REDIS_NEXT=" + there, "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	jobs := secondly(strings.Split("abcdefghij", ""), "") // so many that no two nodes may go first for all of them
	var nodes []*process
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, nodeOf(t, env, name, jobs))
	}
	nodes[0].logged("run ended")
	m := newMover(t, "redis://"+from.Addr(), there)
	m.wants(exitDone, "nothing is in the way; next: move seal", "plan")
	m.wants(exitDone, "nothing runs any more; next: move copy", "seal", "--drain", "10s")
	url := nodes[0].field("node starting", "http")
	nodes[0].logged("a move has closed the namespace")
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "n1: the namespace is closed: its jobs move to the Cluster of") {
		t.Errorf("/readyz of a sealed namespace: %d %s", code, body)
	}
	if code, _, stderr := call(env, "", "jobs", "run", "a"); code != exitRefused || !strings.Contains(stderr, "its jobs move to the Cluster of") {
		t.Errorf("a trigger: exit %d, %s", code, stderr)
	}
	m.wants(exitDone, "everything is copied; next: move open", "copy")
	opened := time.Now()
	m.wants(exitDone, "nodes with redis.next go on there by themselves", "open")
	for _, p := range nodes {
		p.logged("the namespace has moved: going on in the other Redis", `"redis":"the Cluster of`)
	}
	at := []string{"ESCAPEMENT_REDIS_URL=" + there}
	eventually(t, "all nodes run there", func() bool {
		by := map[string]bool{}
		for _, r := range decode[[]runJSON](t, at, "runs", "list", "--outcome", "succeeded") {
			if r.Tick.After(opened) {
				by[r.Node] = true
			}
		}
		return len(by) == 3
	})
	eventually(t, "the node is ready", func() bool { code, _ := get(t, url+"/readyz"); return code == http.StatusOK })
	for _, p := range nodes {
		p.signal(syscall.SIGTERM)
		p.exits(exitDone)
	}
	once(t, at)
	inARow(t, at, opened)
	m.wants(exitDone, "the namespace lives at the Cluster of", "status")
	if got := decode[move.Status](t, m.env, "move", "status"); got.Next != move.NextDone || got.From.State != "moved" || got.To.State != "open" || got.To.Jobs != 10 {
		t.Errorf("got %+v", got)
	}
	// Who comes back does no harm: with redis.next it goes on there, without it waits.
	back := start(t, append(slices.Clone(env), "ESCAPEMENT_NODE_NAME=back"), "run", "--config", write(t, jobs))
	back.logged("run ended")
	back.logged("the namespace has moved: going on in the other Redis")
	back.signal(syscall.SIGTERM)
	back.exits(exitDone)
	lost := start(t, []string{env[0], env[2], "ESCAPEMENT_NODE_NAME=lost"}, "run", "--config", write(t, jobs))
	lost.logged("a move has closed the namespace", "set Next (redis.next) to that Redis")
	lost.signal(syscall.SIGTERM)
	lost.exits(exitDone)
	if strings.Contains(lost.stderr.text(), "run started") {
		t.Error("a node of the old Redis runs something")
	}
}

// inARow wants the ticks of each job since the one before at to be a second apart, and none to start later than 2.5 s
// after it was due or the namespace was open.
func inARow(t *testing.T, env []string, opened time.Time) {
	t.Helper()
	last, worst := map[string]runJSON{}, time.Duration(0)
	runs := decode[[]runJSON](t, env, "runs", "list")
	slices.Reverse(runs)
	for _, r := range runs {
		if was, ok := last[r.Job]; ok && r.Tick.Sub(was.Tick) != time.Second {
			t.Errorf("%s: %s (%s) after %s (%s)", r.Job, r.Tick, r.Outcome, was.Tick, was.Outcome)
		}
		last[r.Job] = r
		started := r.Tick.Add(time.Duration(r.LagMS) * time.Millisecond)
		if started.After(opened) {
			worst = max(worst, min(started.Sub(r.Tick), started.Sub(opened)))
		}
	}
	t.Logf("the latest start was %s after it was possible", worst)
	if worst > 2500*time.Millisecond {
		t.Errorf("the latest start was %s after it was possible", worst)
	}
}

// TestMoveInTheWrongOrder wants each step that comes too early, or goes to the wrong place, refused with the next right one.
func TestMoveInTheWrongOrder(t *testing.T) {
	from, to := redistest.Start(t), redistest.Start(t)
	here, there := "redis://"+from.Addr(), "redis://"+to.Addr()
	p, _ := startNode(t, from, sampleJobs)
	p.logged("run ended")
	m := newMover(t, here, there)
	m.wants(exitRefused, "run `move seal` first", "copy")
	m.wants(exitRefused, "run `move seal` first", "open")
	m.wants(exitRefused, "no move from "+from.Addr()+" to "+to.Addr()+" is under way", "abort")
	m.wants(exitDone, "no move is under way: nodes run at "+from.Addr()+"; next: move plan, then move seal", "status")
	newMover(t, here, here).wants(exitRefused, "--from and --to are the same Redis, "+from.Addr()+"; name another one with --to", "plan")
	other := strings.Replace(here, "127.0.0.1", "localhost", 1)
	newMover(t, here, other).wants(exitRefused, "are the same Redis (run_id ", "seal")
	newMover(t, there, here).wants(exitNotFound, `"escapement" has never been used in the Redis at `+to.Addr(), "plan")
	m.wants(exitNotFound, `"nope"`, "seal", "--namespace", "nope")

	full := redistest.Start(t)
	q, _ := startNode(t, full, sampleJobs)
	q.logged("run ended")
	for _, step := range []string{"plan", "seal"} {
		newMover(t, here, "redis://"+full.Addr()).wants(exitRefused, full.Addr(), step)
	}
	m.wants(exitDone, "nothing runs any more; next: move copy", "seal", "--cancel-running")
	m.wants(exitRefused, "run `move copy` first", "open")
	newMover(t, here, "redis://"+full.Addr()).wants(exitRefused, "move", "copy")
	m.wants(exitDone, "everything is copied; next: move open", "copy", "--partitions", "16")
	p.logged("a move has closed the namespace")
	m.wants(exitDone, "no move is under way", "abort")
	m.wants(exitDone, "no move is under way", "status")
	p.logged("no move closes the namespace any more")
	m.wants(exitRefused, "run `move seal` first", "open")
	if err := to.Stop(); err != nil {
		t.Fatal(err)
	}
	m.wants(exitUnreachable, to.Addr(), "plan")
	for _, p := range []*process{p, q} {
		p.signal(syscall.SIGTERM)
		p.exits(exitDone)
	}
	once(t, []string{"ESCAPEMENT_REDIS_URL=" + here})
}

// TestMoveSides reads both sides from flags, variables, files and the configuration, in this order, and never shows a password.
func TestMoveSides(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "url")
	if err := os.WriteFile(secret, []byte("redis://:hunter2@127.0.0.1:1/5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, "redis: {url: \"redis://:hunter2@127.0.0.1:2\", next: \"redis://:hunter2@127.0.0.1:1\"}\n")
	for name, tt := range map[string]struct {
		env  []string
		args []string
		code int
		want string
	}{
		"flags":         {[]string{moveFromVariable + "=x", moveToVariable + "=x"}, []string{"--from", "redis://u:hunter2@127.0.0.1:1", "--to", "redis://127.0.0.1:1"}, exitRefused, "the same Redis, 127.0.0.1:1;"},
		"variables":     {[]string{moveFromVariable + "=redis://:hunter2@127.0.0.1:1", moveToVariable + "=redis://127.0.0.1:1"}, nil, exitRefused, "the same Redis, 127.0.0.1:1;"},
		"files":         {[]string{moveFromVariable + "_FILE=" + secret, moveToVariable + "_FILE=" + secret}, nil, exitRefused, "the same Redis, 127.0.0.1:1, database 5;"},
		"configuration": {[]string{moveToVariable + "=redis://127.0.0.1:2"}, []string{"--config", file}, exitRefused, "the same Redis, 127.0.0.1:2;"},
		"redis.next":    {[]string{moveFromVariable + "=redis://127.0.0.1:1"}, []string{"--config", file}, exitRefused, "the same Redis, 127.0.0.1:1;"},
		"--redis":       {[]string{moveToVariable + "=redis://127.0.0.1:7"}, []string{"--redis", "redis://:hunter2@127.0.0.1:7"}, exitRefused, "the same Redis, 127.0.0.1:7;"},
		"both":          {[]string{moveToVariable + "=redis://:hunter2@h", moveToVariable + "_FILE=" + secret}, []string{"--from", "redis://h"}, exitConfig, "ESCAPEMENT_MOVE_TO: ESCAPEMENT_MOVE_TO_FILE is set too"},
		"no file":       {[]string{moveToVariable + "_FILE=" + dir + "/none"}, []string{"--from", "redis://h"}, exitConfig, "ESCAPEMENT_MOVE_TO_FILE: "},
		"a bad flag":    {nil, []string{"--from", "redis://u:hunter2@h/x", "--to", "redis://h"}, exitConfig, "--from: "},
		"a bad value":   {[]string{moveToVariable + "=redis+cluster://u:hunter2@a:b"}, []string{"--from", "redis://h"}, exitConfig, "ESCAPEMENT_MOVE_TO: server 1 of 1 is not HOST:PORT"},
		"no --from":     {nil, []string{"--to", "redis://h"}, exitUsage, "--from is missing"},
		"empty":         {[]string{moveToVariable + "="}, []string{"--from", "redis://h"}, exitConfig, "ESCAPEMENT_MOVE_TO: has no scheme"},
		"unreachable":   {nil, []string{"--from", "redis://:hunter2@127.0.0.1:1", "--to", "redis://:hunter2@127.0.0.1:2"}, exitUnreachable, "127.0.0.1:1"},
		"a slip":        {[]string{"ESCAPEMENT_MOVE_TOO=x"}, []string{"--from", "redis://127.0.0.1:1", "--to", "redis://127.0.0.1:1"}, exitRefused, "did you mean ESCAPEMENT_MOVE_TO"},
	} {
		code, stdout, stderr := call(tt.env, "", append([]string{"move", "plan"}, tt.args...)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit %d, %q, %q; want %d, %q", name, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// TestMoveStatusOfOneSide shows what the side that answers knows.
func TestMoveStatusOfOneSide(t *testing.T) {
	from := redistest.Start(t)
	p, _ := startNode(t, from, sampleJobs)
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	env := newMover(t, "redis://"+from.Addr(), "redis://"+closedPort(t)).env
	code, stdout, stderr := call(env, "", "move", "status")
	if code != exitUnreachable || !strings.Contains(stdout, "\nfrom  open   -      16          16 open  3     0        0        "+from.Addr()+"\n") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if err := redistest.Start(t).Client(t).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	locked := redistest.Start(t)
	if err := locked.Client(t).ConfigSet(t.Context(), "requirepass", "correct-horse").Err(); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = call(newMover(t, "redis://"+from.Addr(), "redis://:hunter2@"+locked.Addr()).env, "", "move", "plan")
	if code != exitConfig || !strings.Contains(stderr, locked.Addr()) || !strings.Contains(stderr, "WRONGPASS") || strings.Contains(stderr, "hunter2") {
		t.Errorf("a wrong password: exit %d, %s", code, stderr)
	}
}

// TestMovePlanJSON has the counts, and lists that are never null.
func TestMovePlanJSON(t *testing.T) {
	from, to := redistest.Start(t), redistest.Start(t)
	p, _ := startNode(t, from, sampleJobs)
	p.logged("run ended")
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	m := newMover(t, "redis://"+from.Addr(), "redis://"+to.Addr()+"/2")
	plan := decode[move.Plan](t, m.env, "move", "plan", "--partitions", "4")
	if plan.Jobs != 3 || plan.Rows == 0 || plan.FromPartitions != 16 || plan.ToPartitions != 4 || plan.InTheWay == nil || plan.To != to.Addr()+", database 2" {
		t.Errorf("got %+v", plan)
	}
	for _, args := range [][]string{{"seal", "--drain", "0s", "--partitions", "4"}, {"copy"}, {"open"}} {
		if got := decode[move.Status](t, m.env, append([]string{"move"}, args...)...); got.ID == "" || got.Problems == nil || got.To.Partitions != 4 {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	jobs := decode[[]scheduler.JobView](t, []string{"ESCAPEMENT_REDIS_URL=redis://" + to.Addr() + "/2"}, "jobs", "list")
	if len(jobs) != 3 {
		t.Errorf("%d jobs there", len(jobs))
	}
}
