//go:build unix

package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// lapses is a namespace in which a lock that is taken by force cannot be given back.
type lapses struct{}

func (lapses) Do(_ context.Context, _ ops.Actor, _ ops.Row, _, out any) error {
	*out.(*ops.Release) = ops.Release{Lock: ops.LockView{Name: "a", Kind: ops.LockKind}, Did: ops.ReleaseLapses}
	return nil
}

// TestLocksReleaseForceIsNotGivenBack: a lock that was taken by force and could not be given back
// is not released yet.
func TestLocksReleaseForceIsNotGivenBack(t *testing.T) {
	p := plant(t)
	in, err := ops.New(p.client, "escapement")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in       *ops.Client
		released string
	}{{in, `"released": true`}, {ops.NewRemote(lapses{}), `"released": false`}} {
		lease := holding(t, p.server, "a", locking.Options{TTL: short})
		var out, words strings.Builder
		a := &app{stdout: &out, stderr: &words, flags: globalFlags{output: "json"}}
		err := a.locksRelease(tool{ctx: t.Context(), in: tt.in, args: []string{"a"}}, lease.Token(), ops.ReleaseOptions{Force: true})
		if err != nil || !strings.Contains(out.String(), tt.released) {
			t.Errorf("%v, %s%swant %s", err, out.String(), words.String(), tt.released)
		}
	}
}

// TestLocksGetForeign: a key without an expiry has an unknown end of its lock; the end is not now.
func TestLocksGetForeign(t *testing.T) {
	p := plant(t)
	if err := p.client.Set(t.Context(), "{escapement:lock:a}", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.wants(exitDone, "left     -\n", "", "locks", "get", "a")
	_, table, _ := call(p.env, "", "locks", "list")
	if row := strings.Fields(lastLine(table)); len(row) < 4 || row[0] != "a" || row[3] != "-" {
		t.Errorf("got %q", row)
	}
}
