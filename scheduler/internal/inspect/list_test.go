package inspect

import (
	"slices"
	"testing"
)

// Shards of one tick are listed by their numbers, behind their tick, also where a page ends between
// them.
func TestShardsAreListedByNumber(t *testing.T) {
	want := []string{"01J.0", "01J.2", "01J.9", "01J.10", "01J.11", "01J0", "01J1.0", "01J1.00", "missed no node 5"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int {
		after, err := placeOf(place{1, 2, "job", a}.String())
		if err != nil {
			t.Fatal(err)
		}
		return after.compare(place{1, 2, "job", b})
	})
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
