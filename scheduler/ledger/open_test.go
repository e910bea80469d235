package ledger

import (
	"errors"
	"maps"
	"testing"
)

// TestOpenLeavesANewerLayoutAlone: the control record of a newer version is refused and keeps its
// fields, also when it lacks those that this version writes.
func TestOpenLeavesANewerLayoutAlone(t *testing.T) {
	client := server.Client(t)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	newer := map[string]string{"format": "2", "slots": "16"}
	if err := client.HSet(t.Context(), controlKey("newer"), newer).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), client, Config{Namespace: "newer"}); !errors.Is(err, ErrForeign) {
		t.Errorf("opened: %v", err)
	}
	if got := client.HGetAll(t.Context(), controlKey("newer")).Val(); !maps.Equal(got, newer) {
		t.Errorf("the record was changed to %v", got)
	}
	if _, err := OpenExisting(t.Context(), client, Config{Namespace: "nobody"}); !errors.Is(err, ErrNoNamespace) {
		t.Errorf("a tool opened a namespace that nobody used: %v", err)
	}
	if n := client.Exists(t.Context(), controlKey("nobody")).Val(); n != 0 {
		t.Error("a tool created a namespace")
	}
}
