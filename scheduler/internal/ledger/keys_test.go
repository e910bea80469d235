package ledger_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// TestKeysAreOnThePage: docs/storage.md lists exactly the keys of a partition.
func TestKeysAreOnThePage(t *testing.T) {
	page := must(os.ReadFile("../../../docs/storage.md"))
	var listed, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `({ns:p}:[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, strings.Replace(row[1], ":p}", ":0}", 1))
	}
	k := ledger.PartitionKeys("ns", 0)
	want = append(k.All(), k.History+"JOB")
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q\nand the keys are\n%q", listed, want)
	}
}

// TestKnownKeys: keys that other packages have below the namespace's prefix are no strangers.
func TestKnownKeys(t *testing.T) {
	r := realRig(t, oneConfig)
	for key, known := range map[string]bool{
		"{trace:lock:order:42}": true, "{trace:lock:order:42}:line": true, "{trace:cron:billing:report}": true, "{trace}:roster": true, "{trace:0}:jobs": true,
		"{trace:0}:odd": false, "{trace:7}:jobs": false, "{trace:odd:a}": false, "{trace}:odd": false,
	} {
		noError(t, r.client.Set(t.Context(), key, "", 0).Err())
		found := must(query.UnknownKeys(t.Context(), r.led))
		if slices.ContainsFunc(found, func(u query.UnknownFormat) bool { return u.Key == key }) == known {
			t.Errorf("%s: known %t", key, !known)
		}
		noError(t, r.client.Del(t.Context(), key).Err())
	}
}

// FuzzRecords: reading any text as a record is an error at worst.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"", "1", "1|R|1|2|3|4|0|1|1|1|r|5|n|a|schedule||succeeded||6||e|f", "1|S|1|2|3|4|5|6|missed|late|",
		"1|1|d|v|1|r|o|1|1|1,2|3,|4,2|missed=3,lost=x", "1|2|0|j|1|0|1|1|9|n|a|5|1|2|schedule||7|s|1|p|q", "1|j|1|0|1|1|1|2|manual|t|3|1|p", "2|x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func() error{
			"entry":   func() error { _, err := ledger.ParseEntry("j", s); return err },
			"lease":   func() error { _, err := ledger.ParseRun("r", s); return err },
			"pending": func() error { _, err := ledger.ParsePending("r", s); return err },
			"row":     func() error { _, err := ledger.ParseRow("j", s); return err },
		} {
			if err := parse(); err != nil && failed(err) != "foreign" {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
	})
}
