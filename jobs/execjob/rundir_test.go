//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package execjob

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A node that was killed leaves its directories, and the next process removes only these.
func TestDirectoriesOfKilledNodesAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	alive, err := newRunDir()
	if err != nil {
		t.Fatal(err)
	}
	left, err := newRunDir()
	if err != nil {
		t.Fatal(err)
	}
	left.lock.Close() // as the end of its process does
	sub := filepath.Join(left.path, "sub")
	other, link := filepath.Join(temp, "escapement-data"), filepath.Join(temp, runDirPrefix+"1")
	if err := errors.Join(os.Mkdir(sub, 0o700), os.WriteFile(filepath.Join(sub, "file"), nil, 0o600), os.Mkdir(other, 0o700), os.Symlink(other, link)); err != nil {
		t.Fatal(err)
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	sweepRunDirs(temp, time.Now().Add(-time.Hour))
	if !there(left.path) {
		t.Error("a young directory is gone")
	}
	sweepRunDirs(temp, time.Now().Add(time.Hour))
	if there(left.path) || !there(alive.path) || !there(other) || !there(link) {
		t.Errorf("left %t, alive %t, another %t, a link %t", there(left.path), there(alive.path), there(other), there(link))
	}
	if err := alive.remove(); err != nil || there(alive.path) {
		t.Errorf("the end of the run: %v", err)
	}
}

// A name that has become another kind of file is not locked, and a named pipe holds up no process.
func TestLockDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{pipe: syscall.ENOTDIR, link: nil, filepath.Join(dir, "none"): syscall.ENOENT} {
		ended := make(chan error, 1)
		go func() {
			_, err := lockDir(path)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil || want != nil && !errors.Is(err, want) { // systems differ in the error of a link
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it waits for a writer", path)
		}
	}
}

// A process looks for such directories when it makes its first one, and every ten minutes: a
// directory that was too young at the first look is removed by a later one.
func TestLooksForDirectories(t *testing.T) {
	t.Parallel()
	var looks sweepTimer
	began := time.Now()
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {youngDir, false}, {sweepEvery - 1, false}, {sweepEvery, true}, {sweepEvery + youngDir, false}, {2 * sweepEvery, true}} {
		if got := looks.due(began.Add(tt.after)); got != tt.want {
			t.Errorf("after %s: %t", tt.after, got)
		}
	}
}
