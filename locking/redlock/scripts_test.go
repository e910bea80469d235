package redlock

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
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
	if run(topupScript, keys, "newer", newer, 60000, stateKeep) != codeYes || run(releaseScript, keys, "newer", 9, 0, stateKeep) != codeYes {
		t.Fatal("the newer grant was not put in place and withdrawn")
	}
	if run(topupScript, keys, "older", older, 60000, stateKeep) == codeYes {
		t.Errorf("token %d came back behind token %d", older, newer)
	}
}

// TestScriptsFollowModel gives the scripts, on both servers, and the model of the
// simulation the same random operations, and compares every answer.
func TestScriptsFollowModel(t *testing.T) {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	emb := e.Client()
	t.Cleanup(func() { _ = emb.Close() })
	for where, client := range map[string]*redis.Client{"redis-server": redistest.Start(t).Client(t), "embedded": emb} {
		ctx := t.Context()
		run := 0
		look := func() *node {
			reply, err := nodeScript.Run(ctx, client, []string{nodeKey("m")}).Slice()
			if err != nil {
				t.Fatal(err)
			}
			n, err := readNode(reply)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		repair := func(floor locking.Token) {
			if code, err := repairScript.Run(ctx, client, []string{nodeKey("m")}, look().runID, floor, -1, 60000).Int(); err != nil || code != 1 {
				t.Fatal(code, err)
			}
		}
		repair(0)
		model, rng := &simMaster{}, rand.New(rand.NewPCG(9, 9))
		for i := range 1500 {
			name, owner := rng.IntN(2), "owner"+string(rune('a'+rng.IntN(3)))
			keys := lockKeys("m", "lock"+string(rune('a'+name)))
			hint := locking.Token(i*2 + rng.IntN(100))
			var got, want string
			kind := rng.IntN(24)
			switch {
			case kind < 12:
				reply, err := acquireScript.Run(ctx, client, keys, owner, 60000, i, hint, 0, 0, "", stateKeep, 60000).Slice()
				if err != nil {
					t.Fatal(err)
				}
				p, err := readPromise(reply)
				if err != nil {
					t.Fatal(err)
				}
				w := model.promise(name, owner, hint)
				got, want = fmt.Sprint(p.code, p.token, p.held.owner), fmt.Sprint(w.code, w.token, w.held.owner)
				if p.code == codeReturned { // the model knows no owner twice
					client.HDel(ctx, keys[1], "o")
					model.release(name, owner)
					continue
				}
			case kind < 16:
				token := model.locks[name].token + locking.Token(rng.IntN(5)-2)
				code, err := confirmScript.Run(ctx, client, keys, owner, token, stateKeep).Int()
				if err != nil {
					t.Fatal(err)
				}
				got, want = fmt.Sprint(code), fmt.Sprint(model.confirm(name, owner, token, rules{}))
			case kind < 20:
				if err := releaseScript.Run(ctx, client, keys, owner, i, 0, stateKeep).Err(); err != nil {
					t.Fatal(err)
				}
				model.release(name, owner)
			case kind < 22:
				client.Del(ctx, keys[0])
				model.locks[name].owner = ""
			case kind == 22: // emptied: the marker goes, and with it the vote
				client.FlushAll(ctx)
				model.restartEmpty(0, rules{})
			default:
				if model.votes() {
					continue
				}
				repair(hint)
				model.voting, model.largest = model.life, max(model.largest, hint)
			}
			n := look()
			got += fmt.Sprint(" ", n.votes, n.largest)
			want += fmt.Sprint(" ", model.votes(), model.largest)
			if got != want {
				t.Fatalf("%s, step %d, kind %d: got %s; the model says %s", where, i, kind, got, want)
			}
			run++
		}
		t.Logf("%s: %d steps agree", where, run)
	}
}
