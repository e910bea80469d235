package execjob

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// prefix begins the node's own settings and the run's variables.
const prefix = "ESCAPEMENT_"

// maxVariable bounds name and value of a variable on Linux: 128 KiB with the equals sign and
// the closing NUL.
const maxVariable = 128<<10 - 2

// The variables of a command with Checkpoints, and of one with Result.
const (
	checkpointFile = prefix + "CHECKPOINT_FILE"
	progressFile   = prefix + "PROGRESS_FILE"
	resultFile     = prefix + "RESULT_FILE"
)

// groupVariable holds a text by which the processes of a command are found when its node dies while
// it starts the command.
const groupVariable = prefix + "GROUP"

// reserved holds the names that a run sets.
var reserved = func() map[string]bool {
	names := map[string]bool{groupVariable: true, checkpointFile: true, progressFile: true, resultFile: true}
	for _, v := range variables(jobs.NewRun(jobs.RunInfo{})) {
		names[v.name] = true
	}
	return names
}()

// Sets reports whether each run sets the environment variable called name.
func Sets(name string) bool { return reserved[name] }

type variable struct{ name, value string }

// variables returns the variables of a run. Without a tick its values are empty.
func variables(run *jobs.Run) []variable {
	var tick, tickMS string
	if t := run.Tick(); !t.IsZero() {
		tick, tickMS = t.Format(spec.TimeLayout), strconv.FormatInt(t.UnixMilli(), 10)
	}
	return []variable{
		{prefix + "JOB", run.Job()},
		{prefix + "TICK", tick},
		{prefix + "TICK_MS", tickMS},
		{prefix + "RUN", run.ID()},
		{prefix + "ATTEMPT", strconv.Itoa(run.Attempt())},
		{prefix + "TRY", strconv.Itoa(run.Try())},
		{prefix + "TOKEN", strconv.FormatInt(run.Token(), 10)},
		{prefix + "NODE", run.Node()},
		{prefix + "SHARD", strconv.Itoa(run.Shard())},
		{prefix + "SHARDS", strconv.Itoa(run.Shards())},
		{prefix + "PARAM", run.Param()},
		{prefix + "PAYLOAD", string(run.Payload())},
		{prefix + "TRIGGER", run.Trigger().String()},
	}
}

// environment returns the command's environment: inherited, then added, then the run's.
func environment(inherited []string, added map[string]string, run *jobs.Run) ([]string, error) {
	var env []string
	for _, kv := range inherited {
		if !strings.HasPrefix(kv, prefix) {
			env = append(env, kv)
		}
	}
	for _, name := range sortedKeys(added) {
		env = append(env, name+"="+added[name])
	}
	for _, v := range variables(run) {
		if len(v.name)+len(v.value) > maxVariable {
			return nil, fmt.Errorf("%s of %d bytes does not fit into a variable, which has at most %d",
				v.name, len(v.value), maxVariable)
		}
		if strings.Contains(v.value, "\x00") {
			return nil, fmt.Errorf("%s holds a NUL character, which a variable cannot", v.name)
		}
		env = append(env, v.name+"="+v.value)
	}
	return env, nil
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
