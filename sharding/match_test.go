package sharding

import (
	"slices"
	"testing"
)

func TestMatches(t *testing.T) {
	have := map[string]string{"zone": "a", "gpu": "", "disk": "fast"}
	tests := []struct {
		name string
		want map[string]string
		ok   bool
	}{
		{"nothing wanted", nil, true},
		{"one", map[string]string{"zone": "a"}, true},
		{"two", map[string]string{"zone": "a", "disk": "fast"}, true},
		{"empty value", map[string]string{"gpu": ""}, true},
		{"other value", map[string]string{"zone": "b"}, false},
		{"one of two", map[string]string{"zone": "a", "disk": "slow"}, false},
		{"missing", map[string]string{"arch": "arm64"}, false},
		{"missing is not empty", map[string]string{"arch": ""}, false},
		{"case counts", map[string]string{"Zone": "a"}, false},
	}
	for _, tt := range tests {
		if got := Matches(tt.want, have); got != tt.ok {
			t.Errorf("%s: Matches(%v) = %v, want %v", tt.name, tt.want, got, tt.ok)
		}
	}
	if Matches(map[string]string{"zone": "a"}, nil) {
		t.Error("a node without labels matches zone=a")
	}
}

func TestEligible(t *testing.T) {
	nodes := []Node{
		{ID: "c", Labels: map[string]string{"zone": "a"}},
		{ID: "a", Labels: map[string]string{"zone": "a"}, Draining: true},
		{ID: "b"},
	}
	if got := ids(Eligible(nodes, map[string]string{"zone": "a"})); !slices.Equal(got, []string{"c"}) {
		t.Errorf("for zone=a: %q, want c", got)
	}
	if got := ids(Eligible(nodes, nil)); !slices.Equal(got, []string{"c", "b"}) {
		t.Errorf("for anything: %q, want c and b", got)
	}
}
