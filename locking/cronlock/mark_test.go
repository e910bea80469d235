//go:build unix

package cronlock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// onBoth runs a test on a real Redis and on the embedded one, whose Lua differs in how it prints numbers.
func onBoth(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.Start(t).Client(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		_, client := redistest.StartEmbedded(t)
		test(t, client)
	})
}

func TestClaim(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		m := mark{client: client, key: "{test:cron:a:b}", skew: time.Minute}
		now := time.Now().Truncate(time.Millisecond)
		at := func(d time.Duration) tick { return tick{at: now.Add(d), due: now.Add(d)} }
		const token = locking.Token(1795681231747399)
		for _, step := range []struct {
			what  string
			tick  tick
			token locking.Token
			want  string // a part of the error; "": claimed
		}{
			{"to ask", at(0), 0, ""},
			{"to ask again, because it records nothing", at(0), 0, ""},
			{"the first", at(0), token, ""},
			{"the first, repeated after a lost reply", at(0), token, ""},
			{"the same for another lease", at(0), token + 1, "claimed before"},
			{"the same, to ask", at(0), 0, "claimed before"},
			{"an earlier one", at(-time.Second), token + 1, "claimed before"},
			{"a later one for a lease from before", at(time.Second), token - 1, "not held any more"},
			{"a later one, to ask", at(time.Second), 0, ""},
			{"a millisecond later", at(time.Millisecond), token + 1, ""},
			{"far too early", at(2 * time.Minute), token + 2, "away from redis' clock"},
			{"far too late", at(-2 * time.Minute), token + 2, "away from redis' clock"},
			{"an interval that began long ago", tick{at: now.Add(-time.Hour), due: now.Add(time.Second), every: 2 * time.Hour}, token + 2, "claimed before"},
			{"nearly too early", at(55 * time.Second), token + 2, ""},
		} {
			err := m.claim(t.Context(), step.tick, step.token)
			if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
				t.Errorf("%s: %v; want %q", step.what, err, step.want)
			}
			if claimed := step.want == "claimed before"; errors.Is(err, errClaimed) != claimed {
				t.Errorf("%s: %v; errClaimed: want %v", step.what, err, claimed)
			}
		}
		if keys := client.Keys(t.Context(), "*").Val(); len(keys) != 1 {
			t.Errorf("keys: %q; want the mark alone", keys)
		}

		client.Set(t.Context(), m.key, "something", 0)
		if err := m.claim(t.Context(), at(0), token); err == nil || !strings.Contains(err.Error(), "something else") {
			t.Errorf("a key of something else: %v", err)
		}
	})
}

// The mark may expire only when its tick can no longer be claimed: claims are allowed from a tick's
// time less the skew to the end of its interval and the skew.
func TestMarkOutlivesItsTick(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		for _, every := range []time.Duration{0, time.Hour} {
			m := mark{client: client, key: "{test:cron:" + every.String() + "}", skew: time.Minute}
			early := time.Now().Add(m.skew - time.Second)
			if err := m.claim(t.Context(), tick{at: early, due: early, every: every}, 1); err != nil {
				t.Fatal(err)
			}
			expires := time.Now().Add(client.PTTL(t.Context(), m.key).Val())
			if last := early.Add(every + m.skew); !expires.After(last) || expires.After(last.Add(5*time.Second)) {
				t.Errorf("every %s: the mark expires %s after the last claim that is allowed; want shortly after", every, expires.Sub(last))
			}
		}
	})
}
