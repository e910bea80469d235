package cli

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// mover is who moves a namespace from one Redis to another.
type mover struct {
	t   *testing.T
	env []string
}

func newMover(t *testing.T, from, to string) mover {
	return mover{t, []string{"ESCAPEMENT_MOVE_FROM=" + from, "ESCAPEMENT_MOVE_TO=" + to}}
}

// wants carries out a step and compares the exit code and a part of the output.
func (m mover) wants(code int, words string, args ...string) {
	m.t.Helper()
	got, stdout, stderr := cmdtest.Call(m.env, "", append([]string{"move"}, args...)...)
	if got != code || !strings.Contains(stderr, words) || code != command.ExitDone && stdout != "" && args[0] != "plan" {
		m.t.Errorf("move %v: exit %d, %s%s; want %d and %q", args, got, stdout, stderr, code, words)
	}
}

// clusterURL is a Cluster as --to takes it.
func clusterURL(c *redistest.Cluster) string {
	return "redis+cluster://" + strings.Join(c.Options().Addrs[:3], ",") + "/"
}

// TestNodesFollowToACluster moves a namespace from one server to a Cluster under three nodes that
// know where it goes: the same processes go on there, and each tick runs once.
func TestNodesFollowToACluster(t *testing.T) {
	t.Parallel()
	from, to := redistest.Start(t), redistest.StartCluster(t)
	there := clusterURL(to)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + from.Addr(), "ESCAPEMENT_REDIS_NEXT=" + there, "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	jobs := secondly(strings.Split("abcdefghij", ""), "") // so many that no two nodes may go first for all of them
	var nodes []*cmdtest.Running
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, nodeOf(t, env, name, jobs))
	}
	nodes[0].Logged("run ended")
	m := newMover(t, "redis://"+from.Addr(), there)
	m.wants(command.ExitDone, "nothing is in the way; next: move seal", "plan")
	m.wants(command.ExitDone, "nothing runs any more; next: move copy", "seal", "--drain", "10s")
	url := nodes[0].Field("node starting", "http")
	nodes[0].Logged("a move has closed the namespace")
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "n1: the namespace is closed: its jobs move to the Cluster of") {
		t.Errorf("/readyz of a sealed namespace: %d %s", code, body)
	}
	if code, _, stderr := cmdtest.Call(env, "", "jobs", "run", "a"); code != command.ExitRefused || !strings.Contains(stderr, "its jobs move to the Cluster of") {
		t.Errorf("a trigger: exit %d, %s", code, stderr)
	}
	if _, stdout, _ := cmdtest.Call(env, "", "nodes", "list"); strings.Count(stdout, "closed by a move") != 3 {
		t.Errorf("nodes of a sealed namespace:\n%s", stdout)
	}
	m.wants(command.ExitDone, "everything is copied; next: move open", "copy")
	opened := time.Now()
	m.wants(command.ExitDone, "nodes with redis.next go on there by themselves", "open")
	for _, p := range nodes {
		p.Logged("the namespace has moved: going on in the other Redis", `"redis":"the Cluster of`)
	}
	at := []string{"ESCAPEMENT_REDIS_URL=" + there}
	cmdtest.Eventually(t, "all nodes run there", func() bool {
		by := map[string]bool{}
		for _, r := range cmdtest.Decode[[]runJSON](t, at, "runs", "list", "--outcome", "succeeded") {
			if r.Tick.After(opened) {
				by[r.Node] = true
			}
		}
		return len(by) == 3
	})
	cmdtest.Eventually(t, "the node is ready", func() bool { code, _ := get(t, url+"/readyz"); return code == http.StatusOK })
	for _, p := range nodes {
		p.Signal(syscall.SIGTERM)
		p.Exits(command.ExitDone)
	}
	once(t, at)
	inARow(t, at)
	m.wants(command.ExitDone, "the namespace lives at the Cluster of", "status")
	if got := cmdtest.Decode[move.Status](t, m.env, "move", "status"); got.Next != move.NextDone || got.From.State != "moved" || got.To.State != "open" || got.To.Jobs != 10 {
		t.Errorf("got %+v", got)
	}
	// A node that comes back does no harm: with redis.next it goes on there, without redis.next it waits.
	back := cmdtest.Start(t, append(slices.Clone(env), "ESCAPEMENT_NODE_NAME=back"), "run", "--config", testkit.Write(t, jobs))
	back.Logged("run ended")
	back.Logged("the namespace has moved: going on in the other Redis")
	back.Signal(syscall.SIGTERM)
	back.Exits(command.ExitDone)
	lost := cmdtest.Start(t, []string{env[0], env[2], "ESCAPEMENT_NODE_NAME=lost"}, "run", "--config", testkit.Write(t, jobs))
	lost.Logged("a move has closed the namespace", "set Next (redis.next) to that Redis")
	lost.Signal(syscall.SIGTERM)
	lost.Exits(command.ExitDone)
	if strings.Contains(lost.Stderr.Text(), "run started") {
		t.Error("a node of the old Redis runs something")
	}
}

// inARow wants a record of each tick of each job between the first and the last listed tick. How
// late a tick may start is judged in virtual time, by the tests of moves in scheduler.
func inARow(t *testing.T, env []string) {
	t.Helper()
	ticks := map[string][]int64{}
	for _, r := range cmdtest.Decode[[]runJSON](t, env, "runs", "list") {
		for at := r.Tick; !at.After(r.Until) || at.Equal(r.Tick); at = at.Add(time.Second) {
			ticks[r.Job] = append(ticks[r.Job], at.Unix())
		}
	}
	for job, all := range ticks {
		slices.Sort(all)
		all = slices.Compact(all)
		if lacking := all[len(all)-1] - all[0] + 1 - int64(len(all)); lacking != 0 {
			t.Errorf("%s: %d ticks have no record", job, lacking)
		}
	}
}

// TestMoveByHand goes through a move of a namespace without nodes: steps that come too early, or go
// to the wrong place, are refused with the next right one; plan and status print lists that are
// never null.
func TestMoveByHand(t *testing.T) {
	t.Parallel()
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p, to, full := cmdtest.Plant(t, yearly), redistest.Start(t), cmdtest.Plant(t)
	here, there := "redis://"+p.Server.Addr(), "redis://"+to.Addr()+"/2"
	m := newMover(t, here, there)
	m.wants(command.ExitRefused, "run `move seal` first", "copy")
	m.wants(command.ExitRefused, "run `move seal` first", "open")
	m.wants(command.ExitRefused, "is under way", "abort")
	m.wants(command.ExitDone, "no move is under way: nodes run at "+p.Server.Addr()+"; next: move plan, then move seal", "status")
	newMover(t, here, strings.Replace(here, "127.0.0.1", "localhost", 1)).wants(command.ExitRefused, "are the same Redis (id ", "seal")
	newMover(t, there, here).wants(command.ExitNotFound, `"escapement" has never been used in the Redis at `+to.Addr(), "plan")
	newMover(t, here, "redis://"+full.Server.Addr()).wants(command.ExitRefused, full.Server.Addr(), "seal")
	m.wants(command.ExitNotFound, `"nope"`, "seal", "--namespace", "nope")
	busy := cmdtest.Plant(t, yearly)
	run := busy.Granted(yearly, "1")
	newMover(t, "redis://"+busy.Server.Addr(), "redis://"+to.Addr()+"/3").wants(command.ExitRefused, "1 run goes on: yearly (run "+run, "seal", "--drain", "0s")
	if plan := cmdtest.Decode[move.Plan](t, m.env, "move", "plan", "--partitions", "4"); plan.Jobs != 1 || plan.FromPartitions != 1 || plan.ToPartitions != 4 || plan.InTheWay == nil ||
		plan.To != to.Addr()+", database 2" {
		t.Errorf("got %+v", plan)
	}
	m.wants(command.ExitDone, "nothing runs any more; next: move copy", "seal", "--partitions", "4", "--cancel-running")
	m.wants(command.ExitRefused, "run `move copy` first", "open")
	m.wants(command.ExitDone, "no move is under way", "abort")
	for _, args := range [][]string{{"seal", "--drain", "0s", "--partitions", "4"}, {"copy"}, {"open"}} {
		if got := cmdtest.Decode[move.Status](t, m.env, append([]string{"move"}, args...)...); got.ID == "" || got.Problems == nil || got.To.Partitions != 4 {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	if list := cmdtest.Decode[[]ops.JobView](t, []string{"ESCAPEMENT_REDIS_URL=" + there}, "jobs", "list"); len(list) != 1 {
		t.Errorf("%d jobs there", len(list))
	}
	if err := to.Stop(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := cmdtest.Call(m.env, "", "move", "status") // shows the reachable side's state
	if code != command.ExitUnreachable || !strings.Contains(stdout, "\nfrom  moved ") || !strings.Contains(stderr, to.Addr()) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	guard(t, full.Server.Addr(), "correct-horse")
	newMover(t, here, "redis://:hunter2@"+full.Server.Addr()).wants(command.ExitConfig, "WRONGPASS", "plan")
}
