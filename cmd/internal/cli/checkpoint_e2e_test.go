package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// stepsJob is a command of 200 steps. It writes each into a table, then saves where it is and says how far.
const stepsJob = `
jobs:
  - name: steps
    schedule: "0 0 1 1 *"
    ttl: 5s
    on_crash: rerun
    exec:
      checkpoints: files
      env: {TABLE: %q}
      command:
        - sh
        - -ec
        - |
          step=$(cat "$ESCAPEMENT_CHECKPOINT_FILE" 2>/dev/null || echo 0)
          while [ "$step" -lt 200 ]; do
            echo "$ESCAPEMENT_ATTEMPT $ESCAPEMENT_NODE $step" >> "$TABLE"
            step=$((step + 1))
            echo "$step" > "$ESCAPEMENT_CHECKPOINT_FILE.new"
            mv "$ESCAPEMENT_CHECKPOINT_FILE.new" "$ESCAPEMENT_CHECKPOINT_FILE"
            echo "$step 200 step $step" > "$ESCAPEMENT_PROGRESS_FILE"
            sleep 0.1
          done
`

// stepsTable is what the command has written.
type stepsTable struct {
	path     string
	attempts []attemptSteps
	done     map[int]bool
}

type attemptSteps struct {
	node        string
	first, last int
}

func (s *stepsTable) read(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	s.attempts, s.done = nil, map[int]bool{}
	for line := range strings.Lines(string(text)) {
		var attempt, step int
		var node string
		if _, err := fmt.Sscan(line, &attempt, &node, &step); err != nil {
			continue // half a line, of a command that was killed or writes
		}
		for len(s.attempts) < attempt {
			s.attempts = append(s.attempts, attemptSteps{node, step, step})
		}
		s.attempts[attempt-1].last = step
		s.done[step] = true
	}
}

// TestCheckpointOfACommand kills the node under a command three times. The next attempt goes on from what was saved, all steps are
// done, and the checkpoint is gone at the end.
func TestCheckpointOfACommand(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	table := &stepsTable{path: filepath.Join(t.TempDir(), "table")}
	job, nodes := fmt.Sprintf(stepsJob, table.path), map[string]*process{}
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes[name] = nodeOf(t, env, name, job)
	}
	if code, _, stderr := call(env, "", "jobs", "run", "steps"); code != exitDone {
		t.Fatal(stderr)
	}
	going := func() (run scheduler.RunView) {
		for _, r := range decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "steps", "--outcome", "running") {
			run = r
		}
		return run
	}
	for kill := 1; kill <= 3; kill++ {
		eventually(t, "an attempt gets on", func() bool {
			table.read(t)
			return len(table.attempts) == kill && table.attempts[kill-1].last > table.attempts[kill-1].first+30
		})
		if kill == 1 {
			eventually(t, "its progress is shown", func() bool {
				p := going().Progress
				return p != nil && p.Total == 200 && p.Done > 0 && p.Note == fmt.Sprint("step ", p.Done)
			})
		}
		name := table.attempts[kill-1].node
		nodes[name].signal(syscall.SIGKILL)
		nodes[name].exits(-1)
		nodes[name] = nodeOf(t, env, name, job)
	}
	eventually(t, "all steps are done", func() bool {
		table.read(t)
		return len(table.done) == 200
	})
	for i := 1; i < len(table.attempts); i++ {
		if was, is := table.attempts[i-1], table.attempts[i]; is.first <= was.first || is.first > was.last+1 {
			t.Errorf("attempt %d did the steps from %d to %d, the next one from %d on", i, was.first, was.last, is.first)
		}
	}
	eventually(t, "the run has ended", func() bool { return going().Run == "" })
	runs := decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "steps")
	if len(runs) != 4 || runs[0].Outcome != "succeeded" || runs[0].Attempt != 4 || runs[0].Progress != nil {
		t.Errorf("runs: %+v", runs)
	}
}
