package cli

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

var checkpointKills = flag.Int("checkpoint.kills", 3, "how many nodes TestCheckpointOfACommand kills, 1 to 12")

const steps = 200

// stepsJob is a command of 200 steps. It brings each step to a sink, then saves a checkpoint and
// reports its progress. Each attempt leaves a process behind that is outside of the command's group
// and outlives the node: the process repeats the attempt's first step as soon as the sink has seen
// a newer token, and ends with the sink.
const stepsJob = `
jobs:
  - name: steps
    schedule: "0 0 1 1 *"
    ttl: 3s
    on_crash: rerun
    rerun_max: 20
    exec:
      checkpoints: files
      env: {SINK: %q, TOKEN: %q}
      command:
        - sh
        - -ec
        - |
          step=$(cat "$ESCAPEMENT_CHECKPOINT_FILE" 2>/dev/null || echo 0)
          late="while seen=\$($TOKEN) && ! test \"\$seen\" -gt $ESCAPEMENT_TOKEN; do sleep 0.2; done; $SINK $ESCAPEMENT_TOKEN $step late"
          setsid sh -c "$late" </dev/null >/dev/null 2>&1 &
          while [ "$step" -lt 200 ]; do
            case $($SINK "$ESCAPEMENT_TOKEN" "$step" "$ESCAPEMENT_NODE") in
              ok|done) ;;
              wait) sleep 0.05; continue ;;
              *) exit 1 ;;
            esac
            step=$((step + 1))
            echo "$step" > "$ESCAPEMENT_CHECKPOINT_FILE.new"
            mv "$ESCAPEMENT_CHECKPOINT_FILE.new" "$ESCAPEMENT_CHECKPOINT_FILE"
            echo "$step 200 step $step" > "$ESCAPEMENT_PROGRESS_FILE"
          done
`

// sinkScript does a step that is the next one, refuses an older token than it has seen, and lets a
// step wait that the test does not want yet.
const sinkScript = `
local token, step = ARGV[1], tonumber(ARGV[2])
if tonumber(token) < tonumber(redis.call('GET', 'token') or '0') then redis.call('INCR', 'stale') return 'stale' end
redis.call('SET', 'token', token)
if redis.call('HSETNX', 'first', token, step) == 1 then redis.call('RPUSH', 'attempts', step .. ' ' .. ARGV[3]) end
local done = redis.call('LLEN', 'steps')
if step < done then redis.call('INCR', 'repeated') return 'done' end
if step > done then return 'gap' end
if step >= tonumber(redis.call('GET', 'limit')) then return 'wait' end
redis.call('RPUSH', 'steps', step)
return 'ok'`

// stepSink is a database that the command writes to: it keeps each step once, and refuses who is
// too late.
type stepSink struct {
	t      *testing.T
	client *redis.Client
	env    []any // of the job: a call of the script, and a script that reads the newest token
}

func newStepSink(t *testing.T) *stepSink {
	t.Helper()
	for _, name := range []string{"redis-cli", "setsid"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v; install the packages redis-tools and util-linux", err)
		}
	}
	server := redistest.Start(t)
	s := &stepSink{t: t, client: server.Client(t)}
	sha, err := s.client.ScriptLoad(t.Context(), sinkScript).Result()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(server.Addr(), ":")
	cli := fmt.Sprintf("redis-cli -h %s -p %s --raw ", host, port)
	s.env = []any{cli + "EVALSHA " + sha + " 0", cli + "GET token"}
	s.allow(0)
	return s
}

// allow lets the steps below a number be done.
func (s *stepSink) allow(n int) {
	if err := s.client.Set(s.t.Context(), "limit", n, 0).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stepSink) done() int { return int(s.client.LLen(s.t.Context(), "steps").Val()) }

func (s *stepSink) number(key string) int {
	n, _ := s.client.Get(s.t.Context(), key).Int()
	return n
}

// attempt is the first step of an attempt, from 1, and its node; "" when it has not come yet.
func (s *stepSink) attempt(n int) (first int, node string) {
	_, _ = fmt.Sscan(s.client.LIndex(s.t.Context(), "attempts", int64(n-1)).Val(), &first, &node)
	return first, node
}

// savedCheckpoint is the step of the checkpoint that is stored, if there is one.
func savedCheckpoint(t *testing.T, client *redis.Client) (at int, is bool) {
	for field, value := range client.HGetAll(t.Context(), "{escapement:0}:kept").Val() {
		if strings.HasPrefix(field, "s:") {
			at, _ = strconv.Atoi(strings.TrimSpace(value))
			is = true
		}
	}
	return at, is
}

// checkSteps checks that all steps were done in order, each once, and that as many attempts have
// ended as there were kills, and one well.
func checkSteps(t *testing.T, sink *stepSink, env []string, kills int) {
	t.Helper()
	for i, step := range sink.client.LRange(t.Context(), "steps", 0, -1).Val() {
		if step != strconv.Itoa(i) {
			t.Fatalf("step %s was done where %d was next", step, i)
		}
	}
	cmdtest.Eventually(t, "what was left behind is refused", func() bool { return sink.number("stale") == kills })
	runs := cmdtest.Decode[[]ops.RunView](t, env, "runs", "list", "--job", "steps")
	if len(runs) != kills+1 || runs[0].Outcome != jobs.OutcomeSucceeded || runs[0].Attempt != kills+1 || runs[0].Progress != nil {
		t.Errorf("runs: %+v", runs)
	}
}

// TestCheckpointOfACommand kills the node under a command with SIGKILL, again and again: in the
// middle of its steps, or when its checkpoint is stored. The next attempt goes on from the
// checkpoint. All steps are done at the sink, each once and in order, the tokens refuse the steps
// of processes that earlier attempts left behind, and the checkpoint is gone at the end.
func TestCheckpointOfACommand(t *testing.T) {
	t.Parallel()
	kills := *checkpointKills
	server, sink := redistest.Start(t), newStepSink(t)
	client := server.Client(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + server.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	saved := func() (at int, is bool) { return savedCheckpoint(t, client) }
	job, nodes := fmt.Sprintf(stepsJob, sink.env...), map[string]*cmdtest.Running{}
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes[name] = nodeOf(t, env, name, job)
	}
	if code, _, stderr := cmdtest.Call(env, "", "jobs", "run", "steps"); code != command.ExitDone {
		t.Fatal(stderr)
	}
	going := func() (run ops.RunView) {
		for _, r := range cmdtest.Decode[[]ops.RunView](t, env, "runs", "list", "--job", "steps", "--outcome", "running") {
			run = r
		}
		return run
	}
	certain := 0 // up to where the checkpoint is known to be stored
	for kill := 1; kill <= kills; kill++ {
		until := kill * steps / (kills + 1)
		before := sink.done()
		sink.allow(until)
		if kill%2 == 1 { // when all is stored
			cmdtest.Eventually(t, "the checkpoint is stored", func() bool { at, _ := saved(); return at == until })
			certain = until
		} else { // wherever it is
			cmdtest.Eventually(t, "an attempt gets on", func() bool { return sink.done() > before+(until-before)/2 })
		}
		if kill == 1 {
			cmdtest.Eventually(t, "its progress is shown", func() bool {
				p := going().Progress
				return p != nil && p.Total == steps && p.Done == int64(until) && p.Note == fmt.Sprint("step ", until)
			})
		}
		_, name := sink.attempt(kill)
		nodes[name].Signal(syscall.SIGKILL)
		nodes[name].Exits(-1)
		nodes[name] = nodeOf(t, env, name, job)
		cmdtest.Eventually(t, "the next attempt has begun", func() bool { _, next := sink.attempt(kill + 1); return next != "" })
		if first, _ := sink.attempt(kill + 1); first < certain || first > until {
			t.Errorf("attempt %d begins with step %d; %d were certain, and %d were allowed", kill+1, first, certain, until)
		}
	}
	sink.allow(steps)
	cmdtest.Eventually(t, "the run has ended", func() bool { return sink.done() == steps && going().Run == "" })
	checkSteps(t, sink, env, kills)
	if _, is := saved(); is {
		t.Error("the checkpoint is kept after the success")
	}
	t.Logf("%d steps, each once, over %d nodes that were killed; %d were brought twice, and %d with an old token", steps, kills, sink.number("repeated"), sink.number("stale"))
}

const resultJobs = `
jobs:
  - {name: extract, schedule: "* * * * * *", max_runs: 1, exec: {command: [sh, -c, 'echo "{\"rows\": 3}" > "$ESCAPEMENT_RESULT_FILE"'], result: file}}
  - {name: load, after: extract, http: {url: %q, result: body}}
  - {name: tell, after: load, exec: {command: [sh, -c, 'echo "$ESCAPEMENT_PAYLOAD" > "$TO.new"; mv "$TO.new" "$TO"'], env: {TO: %q}}}
`

// TestResultsOfCommandsAndCalls: a command's file, or a call's body, is the follower's payload.
func TestResultsOfCommandsAndCalls(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"loaded": %s, "faults": %t}`, body, err != nil)
	}))
	defer server.Close()
	redis, to := redistest.Start(t), filepath.Join(t.TempDir(), "payload")
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	node := nodeOf(t, env, "a", fmt.Sprintf(resultJobs, server.URL, to))
	cmdtest.Eventually(t, "the last job has written its payload", func() bool {
		_, err := os.Stat(to)
		return err == nil
	})
	if text, err := os.ReadFile(to); err != nil || string(text) != `{"loaded":{"rows":3},"faults":false}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	node.Signal(syscall.SIGTERM)
	node.Exits(command.ExitDone)
}
