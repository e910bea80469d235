package execjob_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
)

// store keeps what a run saves, and creates a file when it has heard of progress.
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

// TestCheckpoints: a command finds its checkpoint, and what it leaves is saved: while it runs, and when it has failed. Its progress is
// told while it runs.
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

// TestCheckpointsAreReserved: nobody else sets the names of the files, and a command without checkpoints has none.
func TestCheckpointsAreReserved(t *testing.T) {
	t.Setenv("ESCAPEMENT_CHECKPOINT_FILE", "/etc/passwd")
	run := jobs.NewRun(jobs.RunInfo{})
	err := execjob.New(execjob.Command{Command: []string{"sh", "-c", `echo "$ESCAPEMENT_CHECKPOINT_FILE"`}})(t.Context(), run)
	if got := string(run.Written()); err != nil || got != "\n" || !execjob.Sets("ESCAPEMENT_CHECKPOINT_FILE") || !execjob.Sets("ESCAPEMENT_PROGRESS_FILE") {
		t.Errorf("%v, wrote %q", err, got)
	}
}
