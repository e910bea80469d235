package ledger

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKeysAreOnThePage: docs/storage.md lists exactly the keys of a partition.
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

// TestKnownKeys: keys that other packages have below the namespace's prefix are no strangers.
func TestKnownKeys(t *testing.T) {
	l := &Ledger{cfg: Config{Namespace: "ns"}, keys: []keys{partitionKeys("ns", 0)}}
	for key, known := range map[string]bool{
		"{ns:lock:order:42}": true, "{ns:lock:order:42}:line": true, "{ns:cron:billing:report}": true, "{ns}:roster": true, "{ns:0}:jobs": true,
		"{ns:0}:odd": false, "{ns:7}:jobs": false, "{ns:odd:a}": false, "{ns}:odd": false,
	} {
		if l.knows(key) != known {
			t.Errorf("%s: known %t", key, !known)
		}
	}
}
