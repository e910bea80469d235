//go:build unix

package redistest

import "testing"

func TestStartMasters(t *testing.T) {
	masters := StartMasters(t, 3)
	ids := make(map[string]bool)
	for _, m := range masters {
		ids[runID(t, m.Client(t))] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d different servers; want 3", len(ids))
	}
	set(t, masters[0].Client(t), "k")
	for _, m := range masters[1:] {
		if n := m.Client(t).Exists(t.Context(), "k").Val(); n != 0 {
			t.Errorf("%s has what another master was told", m.Addr())
		}
	}
}
