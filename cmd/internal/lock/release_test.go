//go:build unix

package lock

import (
	"context"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
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
	p := cmdtest.Plant(t)
	in, err := ops.New(p.Client, "escapement")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		client   *ops.Client
		released string
	}{{in, `"released": true`}, {ops.NewRemote(lapses{}), `"released": false`}} {
		lease := cmdtest.HoldLock(t, p.Server, "a", locking.Options{TTL: short})
		var out, words strings.Builder
		a := &command.App{Stdout: &out, Stderr: &words, Flags: command.Flags{Output: "json"}}
		err := locksRelease(command.Tool{App: a, Ctx: t.Context(), Client: tt.client, Args: []string{"a"}}, lease.Token(), ops.ReleaseOptions{Force: true})
		if err != nil || !strings.Contains(out.String(), tt.released) {
			t.Errorf("%v, %s%swant %s", err, out.String(), words.String(), tt.released)
		}
	}
}

// TestLocksGetForeign: a key without an expiry has an unknown end of its lock; the end is not now.
func TestLocksGetForeign(t *testing.T) {
	p := cmdtest.Plant(t)
	if err := p.Client.Set(t.Context(), "{escapement:lock:a}", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Wants(command.ExitDone, "left     -\n", "", "locks", "get", "a")
	_, table, _ := cmdtest.Call(p.Env, "", "locks", "list")
	if row := strings.Fields(lastLine(table)); len(row) < 4 || row[0] != "a" || row[3] != "-" {
		t.Errorf("got %q", row)
	}
}
