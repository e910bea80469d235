//go:build !race

package schedtest

import (
	"maps"
	"strings"
	"testing"
)

// Each rule finds what it is there for: plays that were in order are not once they have been tampered with.
func TestPoliciesCanFail(t *testing.T) {
	var tales []*tale
	for seed := uint64(1); len(tales) < 24; seed++ {
		p, told := policiesPlan(seed)
		if r := Play(t, p); len(told.verdict(r)) == 0 && !told.lost && !told.stepped {
			tales = append(tales, told)
		}
	}
	maps.Copy(tampered, tamperedShards)
	for want, tamper := range tampered {
		t.Run(want, func(t *testing.T) {
			for _, told := range tales {
				bad := told.clone()
				if !tamper(bad) {
					continue
				}
				bad.judge()
				if strings.Contains(strings.Join(bad.broken, "\n"), want) {
					return
				}
			}
			t.Error("in no play was this found")
		})
	}
}
