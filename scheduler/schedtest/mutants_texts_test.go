//go:build mutants

package schedtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTexts: each mutant still finds the text that it replaces. It is quick, and says so before a long hunt does.
func TestTexts(t *testing.T) {
	for _, m := range mutants() {
		for _, e := range m.edits {
			b, err := os.ReadFile("../../" + e.file)
			if err != nil {
				t.Error(m.name, err)
				continue
			}
			if n := strings.Count(string(b), e.old); n != 1 {
				t.Errorf("%s: %s: %d times: %s", m.name, e.file, n, e.old)
			}
		}
	}
}

// TestBuilds: the compiler takes each mutant; one that it does not says nothing about a test. It takes some minutes.
func TestBuilds(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	f := &farm{root: root, dir: t.TempDir()}
	for i, m := range mutants() {
		var changed []string
		for _, e := range m.edits {
			if filepath.Ext(e.file) == ".go" {
				changed = append(changed, "./"+filepath.Dir(e.file))
			}
		}
		if changed == nil {
			continue // scripts
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay, err := f.overlay(i, m)
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"go", "build", "-o", os.DevNull, "-overlay", overlay}, changed...)
			if out, err := f.command(unbrokenLimit, root, args...); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
