package ledger

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKeysAreOnThePage: docs/storage.md lists the keys of a partition, and no others.
func TestKeysAreOnThePage(t *testing.T) {
	page := must(os.ReadFile("../../../docs/storage.md"))
	var listed, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `({ns:p}:[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, strings.Replace(row[1], ":p}", ":0}", 1))
	}
	k := partitionKeys("ns", 0)
	want = append(k.all(), k.history+"JOB")
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q\nand the keys are\n%q", listed, want)
	}
}
