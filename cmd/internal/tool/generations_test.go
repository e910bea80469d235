package tool

import (
	"testing"

	"github.com/escapement/escapement/scheduler/ops"
)

// The way back names the generation as the command takes it.
func TestWayBack(t *testing.T) {
	for want, p := range map[string]ops.Promotion{
		"": {Generation: "neo", Was: "neo"},
		"; the way back: `generations promote \"\"`":               {Generation: "neo"},
		"; the way back: `generations promote neo --job 'bill-*'`": {Was: "neo", Pattern: "bill-*"},
	} {
		if got := wayBack(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
