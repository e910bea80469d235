package ledger_test

import (
	"fmt"
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
)

// A change of the catalog is compared with the stored version; a job with a known version is stored
// again unless a later one is there; changes are read in pages, each once.
func TestCatalog(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		change := func(c ...catalog.Change) []catalog.Answer { return must(catalog.Apply(t.Context(), r.led, c)) }
		first := change(catalog.Change{Job: "a", Definition: "one", Was: "0"})[0]
		second := change(catalog.Change{Job: "a", Definition: "two", Was: ledger.Spell(first.Version)})[0]
		if !first.Done || !second.Done || second.Version <= first.Version {
			t.Fatalf("%+v, then %+v", first, second)
		}
		for _, c := range []catalog.Change{{Job: "a", Definition: "x", Was: "0"}, {Job: "a", Definition: "x", Was: ledger.Spell(first.Version)}, {Job: "a", Definition: "x", Version: ledger.Spell(first.Version)}} {
			if got := change(c)[0]; got.Done || got.Version != second.Version {
				t.Errorf("%+v: %+v, want version %d to stay", c, got, second.Version)
			}
		}
		if got := change(catalog.Change{Job: "nope", Was: "5"})[0]; got.Done || got.Version != 0 {
			t.Errorf("deleting what is not there: %+v", got)
		}
		gone := change(catalog.Change{Job: "a", Was: ledger.Spell(second.Version)})[0]
		if got := must(catalog.Deleted(t.Context(), r.led, []string{"a", "nope"})); len(got) != 1 || got["a"] != gone.Version {
			t.Errorf("deleted are %v", got)
		}
		if got := change(catalog.Change{Job: "a", Definition: "two", Version: ledger.Spell(second.Version)})[0]; got.Done || got.Version != gone.Version {
			t.Errorf("a deleted job is stored again: %+v", got)
		}
		if got := change(catalog.Change{Job: "lost", Definition: "d", Version: ledger.Spell(gone.Version + 5)})[0]; !got.Done || got.Version != gone.Version+5 {
			t.Errorf("a job that Redis had lost: %+v", got)
		}
		later := change(catalog.Change{Job: "later", Definition: "d"})[0]
		if later.Version <= gone.Version+5 {
			t.Errorf("version %d after %d", later.Version, gone.Version+5)
		}
		for page := range 3 {
			var some []catalog.Change
			for i := range catalog.Page - page {
				some = append(some, catalog.Change{Job: fmt.Sprint("job-", page, "-", i), Definition: "d"})
			}
			change(some...)
		}
		seen, end, last := make(map[string]string), int64(0), int64(-1)
		for end != last {
			c := must(catalog.Since(t.Context(), r.led, end))
			for _, j := range c.Jobs {
				if was, twice := seen[j.Job]; twice {
					t.Fatalf("%s is read as %q and again as %q", j.Job, was, j.Definition)
				}
				seen[j.Job] = j.Definition
			}
			end, last = c.End, c.Last
			if want := 3*catalog.Page - 3 + 2; c.Size != want {
				t.Fatalf("the catalog has %d jobs, want %d", c.Size, want)
			}
		}
		if names := must(catalog.Names(t.Context(), r.led)); len(names) != 3*catalog.Page-3+2 || names["later"] != later.Version {
			t.Errorf("%d names, and version %d of a job that has %d", len(names), names["later"], later.Version)
		}
		if text, told := seen["a"]; len(seen) != 3*catalog.Page-3+3 || !told || text != "" {
			t.Errorf("%d changes were read; the deletion: %v %q", len(seen), told, text)
		}
	})
}
