package roster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/locking/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test against a real redis-server and against the embedded one.
func onBoth(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Run("redis-server", func(t *testing.T) {
		test(t, redistest.Start(t).Client(t))
	})
	t.Run("embedded", func(t *testing.T) {
		_, client := redistest.StartEmbedded(t)
		test(t, client)
	})
}

func beat(t *testing.T, r *Roster, id string) View {
	t.Helper()
	v, err := r.Beat(t.Context(), Member{Node: sharding.Node{ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// must ends the test at an error of a command that only the test needs.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// age makes members look as if they had last been seen that much earlier.
func age(t *testing.T, client *redis.Client, key string, by time.Duration, members ...string) {
	t.Helper()
	for _, m := range members {
		must(client.ZIncrBy(t.Context(), key, -float64(by.Milliseconds()), m).Result())(t)
	}
}

func memberIDs(members []Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.ID
	}
	return out
}

func wantMembers(t *testing.T, v View, want ...string) {
	t.Helper()
	if got := memberIDs(v.Members); !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
}

// content is everything the roster's keys hold, times left out.
func content(ctx context.Context, client *redis.Client, k keys) (string, error) {
	roster, err := client.HGetAll(ctx, k.roster).Result()
	if err != nil {
		return "", err
	}
	sets, err := client.HGetAll(ctx, k.sets).Result()
	if err != nil {
		return "", err
	}
	drains, err := client.HKeys(ctx, k.drains).Result()
	if err != nil {
		return "", err
	}
	slices.Sort(drains)
	var seen [2][]string
	for i, key := range []string{k.seen, k.setsSeen} {
		if seen[i], err = client.ZRange(ctx, key, 0, -1).Result(); err != nil {
			return "", err
		}
		slices.Sort(seen[i]) // equal times are in no order worth comparing
	}
	return fmt.Sprintf("%q %q %q %q", roster, sets, seen, drains), nil
}
