package execjob_test

import (
	"os"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
)

// TestResult: the content of the result file is the run's result when the command has succeeded. A
// result that cannot be kept is reported in the output, and the run has succeeded all the same.
func TestResult(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, tt := range []struct {
		name, script, want, out string
		fails                   bool
		shards                  int
	}{
		{"JSON", `printf ' {"n": 3}\n' > "$ESCAPEMENT_RESULT_FILE"`, `{"n":3}`, "", false, 0},
		{"4 KiB in a larger text", `(printf '[%5000s"' ''; head -c 4092 /dev/zero | tr '\0' x; printf '"]') > "$ESCAPEMENT_RESULT_FILE"`, `["` + strings.Repeat("x", 4092) + `"]`, "", false, 0},
		{"no file", `true`, "", "", false, 0},
		{"an empty file", `echo > "$ESCAPEMENT_RESULT_FILE"`, "", "", false, 0},
		{"a failure", `echo 1 > "$ESCAPEMENT_RESULT_FILE"; exit 3`, "", "", true, 0},
		{"no JSON", `echo done > "$ESCAPEMENT_RESULT_FILE"`, "", "escapement: the result was not kept: result: is no JSON in UTF-8\n", false, 0},
		{"too large", `(printf '"'; head -c 4095 /dev/zero | tr '\0' x; printf '"') > "$ESCAPEMENT_RESULT_FILE"`, "", "not kept: result: 4097 bytes are more than 4096; store it elsewhere", false, 0},
		{"much too large", `head -c 65537 /dev/zero > "$ESCAPEMENT_RESULT_FILE"`, "", "not kept: the file has 65537 bytes, more than 65536", false, 0},
		{"no file, but a pipe", `mkfifo "$ESCAPEMENT_RESULT_FILE"`, "", "not kept: is a named pipe, and no regular file", false, 0},
		{"one directory", `test "$(dirname "$ESCAPEMENT_RESULT_FILE")" = "$(dirname "$ESCAPEMENT_CHECKPOINT_FILE")"; echo 1 > "$ESCAPEMENT_RESULT_FILE"`, "1", "", false, 0},
		{"a shard", `echo 1 > "$ESCAPEMENT_RESULT_FILE"`, "", "not kept: result: a shard has none", false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := jobs.NewRun(jobs.RunInfo{Job: "job", Shards: tt.shards})
			err := execjob.New(execjob.Command{Command: []string{"sh", "-ec", tt.script}, Result: true, Checkpoints: tt.name == "one directory"})(t.Context(), run)
			if out := string(run.Written()); (err != nil) != tt.fails || string(run.Result()) != tt.want || !strings.Contains(out, tt.out) || tt.out == "" && out != "" {
				t.Errorf("%v, result %q, wrote %q; want %q, %q", err, run.Result(), out, tt.want, tt.out)
			}
		})
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestResultIsAskedFor: a command without Result has no file, whatever the node's environment.
func TestResultIsAskedFor(t *testing.T) {
	t.Setenv("ESCAPEMENT_RESULT_FILE", "/etc/passwd")
	run := jobs.NewRun(jobs.RunInfo{})
	err := execjob.New(execjob.Command{Command: []string{"sh", "-c", `echo "$ESCAPEMENT_RESULT_FILE"`}})(t.Context(), run)
	if got := string(run.Written()); err != nil || got != "\n" || !execjob.Sets("ESCAPEMENT_RESULT_FILE") {
		t.Errorf("%v, wrote %q", err, got)
	}
}
