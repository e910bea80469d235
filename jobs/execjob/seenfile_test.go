package execjob

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// A file that a command appends to, in place of replacing it, is told once, and not with each line.
// It counts again when it is good.
func TestGrowingFileIsToldOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := jobs.NewRun(info())
	f, err := newFiles(Command{Checkpoints: true}, run)
	if err != nil {
		t.Fatal(err)
	}
	defer f.remove()
	for n := 4000; n < 6000; n += 100 {
		if err := os.WriteFile(f.progress.path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		f.look(t.Context())
	}
	const want = "escapement: the progress was not kept: the file has "
	if out := string(run.Written()); strings.Count(out, want) != 1 {
		t.Errorf("wrote %q", out)
	}
	replaced := filepath.Join(f.dir.path, "new")
	if err := errors.Join(os.WriteFile(replaced, []byte("1 2"), 0o600), os.Rename(replaced, f.progress.path)); err != nil {
		t.Fatal(err)
	}
	f.look(t.Context())
	if f.progress.told != "" {
		t.Errorf("it is good, and was told: %q", f.progress.told)
	}
	if err := os.WriteFile(f.progress.path, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	f.look(t.Context())
	if out := string(run.Written()); strings.Count(out, want) != 2 {
		t.Errorf("too large again, wrote %q", out)
	}
}
