//go:build !race

package ledger

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestTraceSeesDifferences: what differs between the servers is found, in replies and in keys.
func TestTraceSeesDifferences(t *testing.T) {
	for name, planted := range map[string]edit{
		// Redis prints 14 digits of a number, miniredis all of them; a token has 16.
		"token joined to a string": {"prelude", `return string.format('%.0f', token)`, `return '' .. token`},
		"lease's end joined":       {"prelude", `return string.format('%.0f', n)`, `return tostring(n * 1000)`},
	} {
		t.Run(name, func(t *testing.T) {
			useScripts(t, append(steered, planted)...)
			tr := newTrace(1, realRig(t, traceConfig), embeddedRig(t, traceConfig))
			tr.model = nil
			differs := func() bool {
				return slices.ContainsFunc(tr.wrong, func(s string) bool { return strings.HasPrefix(s, "servers: redis-server replied") })
			}
			if tr.run(t, 500, differs); !differs() {
				t.Fatalf("nothing found in %d operations: %v", tr.step, tr.all())
			}
		})
	}
	const histories = "{trace:0}:history:"
	for name, tamper := range map[string][]any{
		"score": {"ZINCRBY", "{trace:0}:due", "0.5", firstOf(t, 0)}, "field": {"HSET", "{trace:1}:runs", "x", "y"},
		"row": {"LPOP", histories}, "life": {"PEXPIRE", "{trace:0}:jobs", 1_000_000}, "key": {"SET", "{trace:0}:new", 1},
	} {
		t.Run(name, func(t *testing.T) {
			useScripts(t, steered...)
			tr := newTrace(1, realRig(t, traceConfig), embeddedRig(t, traceConfig))
			tr.run(t, 500, func() bool { return len(tr.all()) > 0 })
			tr.report(t, 1)
			before := dump(t, tr.rigs[1].client)
			if tamper[1] == histories { // of the first job that has any by then
				keys := slices.Sorted(maps.Keys(before))
				i := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, histories) })
				if i < 0 {
					t.Fatal("no job has a history")
				}
				tamper[1] = keys[i]
			}
			if err := tr.rigs[1].client.Do(t.Context(), tamper...).Err(); err != nil {
				t.Fatal(err)
			}
			after := dump(t, tr.rigs[1].client)
			if len(differences(before, after)) != 1 {
				t.Fatalf("%v changed nothing that is seen", tamper)
			}
			if tr.check(t); len(tr.wrong) == 0 {
				t.Fatalf("%v was not found", tamper)
			}
		})
	}
}
