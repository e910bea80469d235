// Package testkit writes and compares files for the tests of the program.
package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// Write writes a file config.yaml into a folder of its own, and returns its path.
func Write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Put writes a file and the folder that it is in, the file in one step.
func Put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// Golden compares a text with a file, or rewrites the file under -update.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // a file in testdata
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test -update rewrites it.\n--- got\n%s--- want\n%s", file, got, want)
	}
}

// JobsOf is a file with one job, in its second line.
func JobsOf(name string) string {
	return "jobs:\n  - {name: " + name + ", schedule: \"@hourly\", exec: {command: [x]}}\n"
}

// Volume is a folder whose files are swapped by one symbolic link, as in a ConfigMap.
type Volume struct {
	t   *testing.T
	Dir string
	n   int
}

// NewVolume makes a volume with a file config.yaml.
func NewVolume(t *testing.T, text string) *Volume {
	t.Helper()
	v := &Volume{t: t, Dir: t.TempDir()}
	v.Swap(text)
	if err := os.Symlink("..data/config.yaml", v.File()); err != nil {
		t.Fatal(err)
	}
	return v
}

// File is the path of config.yaml.
func (v *Volume) File() string { return filepath.Join(v.Dir, "config.yaml") }

// Swap replaces the text of config.yaml.
func (v *Volume) Swap(text string) {
	v.t.Helper()
	v.n++
	now, link := strings.Repeat(".", 2)+"v"+string(rune('0'+v.n)), filepath.Join(v.Dir, "..data_tmp")
	Put(v.t, filepath.Join(v.Dir, now, "config.yaml"), text)
	if err := os.Symlink(now, link); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(v.Dir, "..data")); err != nil {
		v.t.Fatal(err)
	}
}
