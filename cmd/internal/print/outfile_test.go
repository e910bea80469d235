//go:build unix

package print

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOutFile: output replaces a file only with the flag for it, and never a device, pipe or link.
func TestOutFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	pipe, unread := at("pipe"), at("unread")
	if err := errors.Join(
		os.WriteFile(at("old"), []byte("old"), 0o600), os.Symlink("old", at("to-old")), os.Symlink("new", at("to-new")), os.Symlink("to-new", at("to-to-new")),
		os.Symlink("loop", at("loop")), syscall.Mkfifo(pipe, 0o600), syscall.Mkfifo(unread, 0o600), os.Symlink(os.DevNull, at("to-null")),
	); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, tt := range []struct {
		name  string
		force bool
		err   string // "" for none
		file  string // that has the backup, and is no link
	}{
		{"old", false, "old: there is a file already; name another one", ""},
		{"to-old", false, "there is a file already", ""},
		{"to-old", true, "", "old"},
		{"to-to-new", false, "", "new"},
		{"to-new", false, "there is a file already", ""},
		{"fresh", false, "", "fresh"},
		{"", true, "is neither a file nor a device nor a pipe", ""},
		{"loop", true, "too many levels of symbolic links", ""},
		{"no/folder", false, "no such file or directory", ""},
		{"unread", false, "unread: nobody reads this pipe; start its reader first", ""},
		{"pipe", false, "", ""},
		{"to-null", false, "", ""},
	} {
		to, err := FindOutFile(at(tt.name), tt.force)
		if err == nil {
			err = to.Write(t.Context(), func(w io.Writer) error { _, err := io.WriteString(w, "backup of "+tt.name); return err })
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		}
		if strings.Contains(tt.err, "already") != errors.Is(err, ErrFileThere) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if text, err := os.ReadFile(at(tt.file)); tt.file != "" && string(text) != "backup of "+tt.name {
			t.Errorf("%s has %q, %v", tt.file, text, err)
		}
	}
	slow, err := FindOutFile(at("raced"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := slow.Write(t.Context(), func(io.Writer) error { return os.WriteFile(at("raced"), []byte("first"), 0o600) }); !errors.Is(err, ErrFileThere) {
		t.Errorf("a file that has come meanwhile: %v", err)
	}
	if text, err := os.ReadFile(at("raced")); string(text) != "first" {
		t.Errorf("a file that has come meanwhile has %q, %v", text, err)
	}
	text := make([]byte, 64)
	if n, err := reader.Read(text); string(text[:n]) != "backup of pipe" {
		t.Errorf("the pipe has %q, %v", text[:n], err)
	}
	for name, kind := range map[string]fs.FileMode{"to-old": fs.ModeSymlink, "to-new": fs.ModeSymlink, "to-null": fs.ModeSymlink, "pipe": fs.ModeNamedPipe, "fresh": 0} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s is another kind of file now: %v, %v", name, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(at("*.*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
