package ledger

import (
	"fmt"
	"slices"
	"testing"
)

// The names of a hash that is larger than a page are read whole, each once.
func TestFieldNames(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		key := r.led.keys[0].jobs
		var want []string
		for i := range 2*keyPage + 7 {
			want = append(want, fmt.Sprintf("job-%05d", i))
			if err := r.client.HSet(t.Context(), key, want[i], "entry").Err(); err != nil {
				t.Fatal(err)
			}
		}
		got := must(r.led.fieldNames(t.Context(), key))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
		if none, err := r.led.fieldNames(t.Context(), r.led.keys[0].defs); err != nil || len(none) > 0 {
			t.Errorf("of no hash: %q, %v", none, err)
		}
	})
}
