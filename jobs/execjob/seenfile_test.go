package execjob

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// checkpointFiles returns the files of a new run with checkpoints.
func checkpointFiles(t *testing.T) (*files, *jobs.Run) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	run := jobs.NewRun(info())
	f, err := newFiles(Command{Checkpoints: true}, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.remove)
	return f, run
}

// A file that a command appends to, in place of replacing it, is reported once, and not with each
// line. After a good content the next fault is reported again.
func TestGrowingFileIsToldOnce(t *testing.T) {
	f, run := checkpointFiles(t)
	for n := 4000; n < 6000; n += 100 {
		if err := os.WriteFile(f.progress.path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		f.takeChanged(t.Context())
	}
	const want = "escapement: the progress was not kept: the file has "
	if out := string(run.Written()); strings.Count(out, want) != 1 {
		t.Errorf("wrote %q", out)
	}
	replaced := filepath.Join(f.dir.path, "new")
	if err := errors.Join(os.WriteFile(replaced, []byte("1 2"), 0o600), os.Rename(replaced, f.progress.path)); err != nil {
		t.Fatal(err)
	}
	f.takeChanged(t.Context())
	if f.progress.reported != "" {
		t.Errorf("it is good, and was told: %q", f.progress.reported)
	}
	if err := os.WriteFile(f.progress.path, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	f.takeChanged(t.Context())
	if out := string(run.Written()); strings.Count(out, want) != 2 {
		t.Errorf("too large again, wrote %q", out)
	}
}

// A file that the command removes between the look at it and the read is no fault, like a file that
// was removed before the look.
func TestFileThatVanishes(t *testing.T) {
	f, run := checkpointFiles(t)
	if err := os.WriteFile(f.progress.path, []byte("1 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen, changed := f.progress.changed()
	if err := os.Remove(f.progress.path); err != nil || !changed {
		t.Fatal(changed, err)
	}
	f.progress.read(run, seen, func([]byte) error { t.Error("read"); return nil })
	if out := run.Written(); out != nil {
		t.Errorf("wrote %q", out)
	}
}
