//go:build mutants

package schedtest_test

import (
	"os"
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
