package roster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// Redis was away for an hour, or its clock jumped. No node is dropped that would not have been
// dropped half a TTL later anyway.
func TestTimeInWhichNobodyBeat(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{TTL: time.Hour})
		for _, id := range []string{"a", "b", "silent"} {
			beat(t, r, id)
		}
		set := announce(t, r, map[string]string{"a": "1"})
		age(t, client, r.keys.seen, 24*time.Hour, "a", "b")
		age(t, client, r.keys.seen, 24*time.Hour+31*time.Minute, "silent")
		age(t, client, r.keys.setsSeen, 24*time.Hour, set)
		fresh := announce(t, r, map[string]string{"b": "1"}) // a node may announce before it beats
		v := beat(t, r, "a")
		wantMembers(t, v, "a", "b")
		if score := client.ZScore(t.Context(), r.keys.setsSeen, fresh).Val(); int64(score) > v.NowMS {
			t.Errorf("the new set was seen at %.0f, after now, %d", score, v.NowMS)
		}
		if ago := v.NowMS - v.Members[1].Seen.UnixMilli(); ago < 29*60_000 || ago > 31*60_000 {
			t.Errorf("b was seen %d ms ago, want half an hour", ago)
		}
		if got := must(r.Sets(t.Context(), []string{set}))(t); len(got) != 1 {
			t.Error("the set did not outlive the pause")
		}
		// From here on time counts again.
		age(t, client, r.keys.seen, 31*time.Minute, "b")
		wantMembers(t, beat(t, r, "a"), "a")
	})
}

// A lone node that beats too rarely still sees the other nodes go.
func TestRareBeatsStillDrop(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{TTL: time.Hour})
		beat(t, r, "dead")
		beat(t, r, "rare")
		for range 2 {
			age(t, client, r.keys.seen, 3*time.Hour, "dead", "rare")
			beat(t, r, "rare")
			if client.ZCard(t.Context(), r.keys.seen).Val() == 1 {
				break
			}
		}
		wantMembers(t, beat(t, r, "rare"), "rare")
	})
}

// Nodes that beat every third of the TTL stay in the roster whatever single steps
// Redis' clock makes, and a dead one leaves it one TTL of true time after its last
// beat, or, because a step back makes it look fresh, one TTL after that step.
func TestStepsOfTheClockDropNobody(t *testing.T) {
	const ttl = 6 * time.Second
	server, client := redistest.StartEmbedded(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		r := New(client, Config{Namespace: fmt.Sprint("run-", run), TTL: ttl})
		living := rapid.IntRange(1, 4).Draw(t, "living")
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var elapsed, doomed time.Duration // doomed: when the dead one must be gone
		check := func(id string) View {
			server.Mini().SetTime(clock)
			v, err := r.Beat(t.Context(), Member{Node: sharding.Node{ID: id}})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		check("dead")
		for i := range living {
			check(fmt.Sprint("n", i))
		}
		doomed = ttl
		for round := range rapid.IntRange(3, 7).Draw(t, "rounds") {
			step := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 4, 5, 60, 86400, -1, -60, -86400}).Draw(t, "step")) * time.Second
			clock = clock.Add(step)
			if step < 0 {
				doomed = elapsed + ttl
			}
			for i := range living {
				// The beats of a round are spread over a third of the TTL.
				part := ttl / 3 / time.Duration(living)
				clock, elapsed = clock.Add(part), elapsed+part
				v := check(fmt.Sprint("n", i))
				got := memberIDs(v.Members)
				for k := range living {
					if !slices.Contains(got, fmt.Sprint("n", k)) {
						t.Fatalf("round %d: n%d was dropped: %q", round, k, got)
					}
				}
				if elapsed >= doomed+ttl/3 && slices.Contains(got, "dead") {
					t.Fatalf("round %d: dead is still there after %v, doomed at %v", round, elapsed, doomed)
				}
			}
		}
	})
}
