package ledger

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestByPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Ledger{keys: make([]keys, rapid.IntRange(1, 40).Draw(t, "partitions"))}
		n := rapid.IntRange(0, 200).Draw(t, "places")
		job := func(i int) string { return fmt.Sprint("job-", i) }
		groups := l.byPartition(n, job)
		if len(groups) != l.Partitions() {
			t.Fatalf("%d groups for %d partitions", len(groups), l.Partitions())
		}
		total := 0
		for p, places := range groups {
			total += len(places)
			if !slices.IsSorted(places) {
				t.Fatalf("partition %d: places %v", p, places)
			}
			for _, i := range places {
				if l.Partition(job(i)) != p {
					t.Fatalf("place %d is not of partition %d", i, p)
				}
			}
		}
		if total != n {
			t.Fatalf("%d places of %d", total, n)
		}
	})
}

// The order of what is said about records must not change from one look to the next.
func TestOpenRunsComeInOrder(t *testing.T) {
	runs, waiting := make(map[string]string), make(map[string]string)
	var want []string
	for i := range 30 {
		id := fmt.Sprintf("run-%02d", i)
		runs[id], waiting["w"+id] = "9|foreign", "9|foreign"
		want = append(want, "run "+id)
	}
	for i := range 30 {
		want = append(want, fmt.Sprintf("pending run wrun-%02d", i))
	}
	var said []string
	openRuns(runs, waiting, func(_ string, err error) { said = append(said, err.Error()) })
	if len(said) != len(want) {
		t.Fatalf("%d of %d records are named", len(said), len(want))
	}
	for i := range want {
		if len(said[i]) < len(want[i]) || said[i][:len(want[i])] != want[i] {
			t.Fatalf("number %d is %q, want %q", i, said[i], want[i])
		}
	}
}
