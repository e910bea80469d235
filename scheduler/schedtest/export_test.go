package schedtest

import (
	"slices"
	"testing"
)

// Check is what Play checks first.
func (p Plan) Check() error { return p.withDefaults().validate() }

// Wordy has every message told in the story.
func (p *Plan) Wordy() { p.wordy = true }

// Break has Redis run a script of the ledger with some of its text replaced: old, new, old, new, ...
func (p *Plan) Break(script string, edits ...string) {
	if p.broken == nil {
		p.broken = make(map[string][]string)
	}
	p.broken[script] = append(p.broken[script], edits...)
}

// WantSame ends the test when two plays of a plan differ, with what the stories have around the first line that
// the other has not.
func WantSame(t *testing.T, one, other Result) {
	t.Helper()
	if one.Digest == other.Digest {
		return
	}
	for _, s := range [][2][]string{{one.Story, other.Story}, {other.Story, one.Story}} {
		there := make(map[string]bool)
		for _, line := range s[1] {
			there[line] = true
		}
		if i := slices.IndexFunc(s[0], func(line string) bool { return !there[line] }); i >= 0 {
			for _, line := range s[0][max(0, i-12):min(len(s[0]), i+4)] {
				t.Logf("%.220s", line)
			}
			t.Log("")
		}
	}
	t.Fatalf("digest %s, then %s", one.Digest, other.Digest)
}
