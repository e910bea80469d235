package redlock

import (
	"testing"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// TestTopUpCountsAsGrant: an older grant is not put back behind it, though its
// owner's next request was withdrawn.
func TestTopUpCountsAsGrant(t *testing.T) {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	client := e.Client()
	t.Cleanup(func() { _ = client.Close() })
	ctx, keys := t.Context(), lockKeys("m", "a")
	run := func(s *redisconn.Script, keys []string, args ...any) int {
		t.Helper()
		code, err := s.Run(ctx, client, keys, args...).Int()
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	run(repairScript, keys[2:], e.RunID(), 0, -1, 60000)
	const older, newer = 5, 10
	if err := acquireScript.Run(ctx, client, keys, "older", 60000, 1, older, 0, 0, "", stateKeep, 60000).Err(); err != nil {
		t.Fatal(err)
	}
	client.Del(ctx, keys[0])
	if run(topupScript, keys, "newer", newer, 60000, stateKeep, 2) != codeYes || run(releaseScript, keys, "newer", 9, 0, stateKeep) != codeYes {
		t.Fatal("the newer grant was not put in place and withdrawn")
	}
	if run(topupScript, keys, "older", older, 60000, stateKeep, 3) == codeYes {
		t.Errorf("token %d came back behind token %d", older, newer)
	}
}
