package execjob_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
)

// store keeps the saved checkpoints of a run, and creates a file when it gets progress.
type store struct {
	mu       sync.Mutex
	saved    []byte
	progress []jobs.Progress
	heard    string // the file
}

func (s *store) Save(_ context.Context, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = data
	return nil
}

func (s *store) Saved() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved
}

func (s *store) Progress(p jobs.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = append(s.progress, p)
	_ = os.WriteFile(s.heard, nil, 0o600)
}

// shell runs a script with files for checkpoints, and returns its error and output.
func (s *store) shell(t *testing.T, script string) (string, error) {
	t.Helper()
	run := jobs.NewRun(jobs.RunInfo{Job: "job", Store: s})
	err := execjob.New(execjob.Command{
		Command: []string{"sh", "-ec", script}, Checkpoints: true, Env: map[string]string{"HEARD": s.heard},
	})(t.Context(), run)
	return string(run.Written()), err
}

// TestCheckpoints: a command finds its checkpoint. A new checkpoint is saved while the command
// runs, and when it has failed. Its progress is reported while it runs.
func TestCheckpoints(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := &store{heard: filepath.Join(t.TempDir(), "heard")}
	const save = `save() { printf %s "$1" > "$ESCAPEMENT_CHECKPOINT_FILE.new"; mv "$ESCAPEMENT_CHECKPOINT_FILE.new" "$ESCAPEMENT_CHECKPOINT_FILE"; }; `
	if out, err := s.shell(t, save+`test ! -e "$ESCAPEMENT_CHECKPOINT_FILE"; save one; exit 3`); err == nil || string(s.Saved()) != "one" {
		t.Fatalf("at first: %v, saved %q: %s", err, s.saved, out)
	}
	out, err := s.shell(t, save+`cat "$ESCAPEMENT_CHECKPOINT_FILE"; save two; echo "120 200 page 120" > "$ESCAPEMENT_PROGRESS_FILE"
		until [ -e "$HEARD" ]; do sleep 0.1; done; rm "$HEARD"
		echo 121 > "$ESCAPEMENT_PROGRESS_FILE"
		until [ -e "$HEARD" ]; do sleep 0.1; done`)
	if err != nil || out != "one" || string(s.Saved()) != "two" {
		t.Errorf("then: %v, wrote %q, saved %q", err, out, s.saved)
	}
	if len(s.progress) != 2 || s.progress[0] != (jobs.Progress{Done: 120, Total: 200, Note: "page 120"}) || s.progress[1] != (jobs.Progress{Done: 121}) {
		t.Errorf("progress: %+v", s.progress)
	}
	out, err = s.shell(t, `head -c 65537 /dev/zero > "$ESCAPEMENT_CHECKPOINT_FILE"; exit 1`)
	if err == nil || !strings.Contains(out, "a checkpoint of 65537 bytes is larger than 65536") || string(s.Saved()) != "two" {
		t.Errorf("too large: %v, wrote %q, saved %q", err, out, s.saved)
	}
	if _, err = s.shell(t, `head -c 65536 /dev/zero > "$ESCAPEMENT_CHECKPOINT_FILE"; exit 1`); err == nil || !bytes.Equal(s.Saved(), make([]byte, 65536)) {
		t.Errorf("64 KiB: %v, %d bytes", err, len(s.saved))
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFilesOfOthers: a file that is not regular, or has no end, holds up neither the command nor
// its node, and is reported.
func TestFilesOfOthers(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, tt := range []struct{ name, script, want string }{
		{"a pipe for the progress", `mkfifo "$ESCAPEMENT_PROGRESS_FILE"; exit 1`, "the progress was not kept: is a named pipe, and no regular file"},
		{"a pipe for the checkpoint", `mkfifo "$ESCAPEMENT_CHECKPOINT_FILE"; exit 1`, "the checkpoint was not kept: is a named pipe, and no regular file"},
		{"a pipe for the result", `mkfifo "$ESCAPEMENT_RESULT_FILE"`, "the result was not kept: is a named pipe, and no regular file"},
		{"2 TiB of progress", `truncate -s 2T "$ESCAPEMENT_PROGRESS_FILE"; exit 1`, "the progress was not kept: the file has 2199023255552 bytes, more than 4096; write one line into another file, and rename it"},
		{"2 TiB of checkpoint", `truncate -s 2T "$ESCAPEMENT_CHECKPOINT_FILE"; exit 1`, "the checkpoint was not kept: jobs: a checkpoint of 2199023255552 bytes is larger than 65536"},
		{"2 TiB of result", `truncate -s 2T "$ESCAPEMENT_RESULT_FILE"`, "the result was not kept: the file has 2199023255552 bytes, more than 65536; store it elsewhere"},
		{"a link", `ln -s /etc/passwd "$ESCAPEMENT_CHECKPOINT_FILE"; exit 1`, "the checkpoint was not kept: is a symbolic link"},
		{"a folder", `mkdir "$ESCAPEMENT_PROGRESS_FILE"; exit 1`, "the progress was not kept: is a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &store{heard: filepath.Join(t.TempDir(), "heard")}
			run := jobs.NewRun(jobs.RunInfo{Job: "job", Store: s})
			command := execjob.Command{Command: []string{"sh", "-ec", tt.script}, Checkpoints: true, Result: true}
			ended := make(chan error, 1)
			go func() { ended <- execjob.New(command)(t.Context(), run) }()
			select {
			case err := <-ended:
				if out := string(run.Written()); !strings.Contains(out, tt.want) || len(s.Saved()) > 0 || (err == nil) == strings.HasSuffix(tt.script, "exit 1") {
					t.Errorf("%v, saved %q, wrote %q; want %q", err, s.saved, out, tt.want)
				}
			case <-time.After(time.Minute):
				t.Fatal("the run does not end")
			}
		})
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCheckpointsAreReserved: the node's environment cannot set the names of the files, and a
// command without checkpoints has none.
func TestCheckpointsAreReserved(t *testing.T) {
	t.Setenv("ESCAPEMENT_CHECKPOINT_FILE", "/etc/passwd")
	run := jobs.NewRun(jobs.RunInfo{})
	err := execjob.New(execjob.Command{Command: []string{"sh", "-c", `echo "$ESCAPEMENT_CHECKPOINT_FILE"`}})(t.Context(), run)
	if got := string(run.Written()); err != nil || got != "\n" || !execjob.Sets("ESCAPEMENT_CHECKPOINT_FILE") || !execjob.Sets("ESCAPEMENT_PROGRESS_FILE") {
		t.Errorf("%v, wrote %q", err, got)
	}
}
