package sharding

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis was away for an hour, or its clock jumped. Nobody is dropped who would not
// have been dropped half a TTL later anyway.
func TestTimeInWhichNobodyBeat(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{TTL: time.Hour})
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

// A lone node that beats too rarely still sees the others go.
func TestRareBeatsStillDrop(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{TTL: time.Hour})
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

func TestClockOfRedisStepsBack(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{TTL: time.Hour})
		beat(t, r, "a")
		beat(t, r, "dead")
		set := announce(t, r, map[string]string{"a": "1"})
		age(t, client, r.keys.seen, -24*time.Hour, "dead")
		age(t, client, r.keys.setsSeen, -24*time.Hour, set)
		v := beat(t, r, "a")
		if got := v.Members[1].Seen.UnixMilli(); got != v.NowMS {
			t.Errorf("dead was seen at %d, want now, %d", got, v.NowMS)
		}
		if score := client.ZScore(t.Context(), r.keys.setsSeen, set).Val(); int64(score) != v.NowMS {
			t.Errorf("the set was seen at %.0f, want now, %d", score, v.NowMS)
		}
		age(t, client, r.keys.seen, time.Hour, "dead")
		wantMembers(t, beat(t, r, "a"), "a")
	})
}

// Three nodes beat in virtual time; one stops without a word. The others agree on
// who is left, and their owners move only from the dead one.
func TestNodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 5 * time.Second
		_, client := embed(t)
		r := NewRoster(client, RosterConfig{TTL: ttl})
		start := time.Now()
		stop := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
		type sight struct {
			node string
			at   time.Duration
			view View
		}
		sights := make(chan sight, 1000)
		for id, end := range stop {
			go func() {
				tick := time.NewTicker(ttl / 3)
				defer tick.Stop()
				for {
					v, err := r.Beat(t.Context(), Member{Node: Node{ID: id}})
					if err != nil {
						t.Error(err)
					}
					sights <- sight{id, time.Since(start), v}
					select {
					case <-end:
						return
					case <-tick.C:
					}
				}
			}()
		}
		later := func(d time.Duration) map[string]View {
			<-time.After(d)
			synctest.Wait()
			last := map[string]View{}
			for len(sights) > 0 {
				s := <-sights
				last[s.node] = s.view
			}
			return last
		}
		before := later(2 * ttl)
		wantMembers(t, before["a"], "a", "b", "c")
		close(stop["c"])
		for _, v := range later(ttl - ttl/3) {
			wantMembers(t, v, "a", "b", "c")
		}
		after := later(ttl)
		if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("%q beat, want a and b", got)
		}
		wantMembers(t, after["a"], "a", "b")
		wantMembers(t, after["b"], "a", "b")
		for i := range 100 {
			key := fmt.Sprint("job-", i)
			was, _ := Owner(key, before["a"].Nodes())
			one, _ := Owner(key, after["a"].Nodes())
			two, _ := Owner(key, after["b"].Nodes())
			if one.ID != two.ID || was.ID != "c" && was.ID != one.ID {
				t.Errorf("%s went from %s to %s and %s", key, was.ID, one.ID, two.ID)
			}
		}
		close(stop["a"])
		close(stop["b"])
		synctest.Wait()
	})
}
