//go:build unix

package boundedfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe is refused at once, also by its link and also with a writer. No call waits for a
// writer.
func TestNamedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for name, read := range map[string]func() error{
		"read":   func() error { _, err := Read(pipe, 1); return err },
		"linked": func() error { _, err := Read(link, 1); return err },
		"direct": func() error { _, err := ReadDirect(pipe, 1); return err },
		"opened": func() error { _, err := Open(pipe); return err },
	} {
		if err := read(); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "is a named pipe, and no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pipe that the process was started with, as a shell's <(command), is read.
func TestInheritedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("secret"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if data, err := Read(name, 10); err != nil || string(data) != "secret" {
		t.Errorf("%s: %q, %v", name, data, err)
	}
}
