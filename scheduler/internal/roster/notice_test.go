package roster

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/sharding"
)

// Texts that only people read are left out of a record that would be too large with them: the node
// lives all the same.
func TestNoticesAreLeftOut(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	r := New(client, Config{})
	stalled := []Stall{{Job: "job", Run: "1", Tick: 2, After: 3}}
	refused := &Refusal{At: 1, Text: "config.yaml:7"}
	for _, labels := range []int{1, MaxRecord - 300} {
		v := must(r.Beat(t.Context(), Member{
			Node:    sharding.Node{ID: "a", Labels: map[string]string{"l": strings.Repeat("x", labels)}},
			Trouble: strings.Repeat("y", 200), Refused: refused, Stalled: stalled,
		}))(t)
		m := v.Members[0]
		if has := labels == 1; (m.Trouble != "") != has || (m.Refused != nil) != has || (m.Stalled != nil) != has {
			t.Errorf("%d bytes of labels: %+v", labels, m)
		}
		if labels == 1 && (*m.Refused != *refused || m.Stalled[0] != stalled[0]) {
			t.Errorf("read %+v", m)
		}
	}
}
