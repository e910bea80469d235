package redislock

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// wrapped is a client that somebody has added something to.
type wrapped struct{ *redis.Client }

func TestList(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{Namespace: "n*[s]"})
		other := NewDriver(c, Config{Namespace: "nx[s]"})
		want := []string{"a", "a}:token", "b}c{d", "{x}", "*"}
		slices.Sort(want)
		for i, name := range want {
			if _, err := d.Acquire(t.Context(), locking.Request{Name: name, Owner: "o", TTL: time.Minute, Holder: "h"}); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 { // one that waits
				_, _ = d.Acquire(t.Context(), locking.Request{Name: name, Owner: "p", TTL: time.Minute, Queue: true})
			}
		}
		for _, name := range []string{"free", "theirs"} {
			if _, err := other.Acquire(t.Context(), locking.Request{Name: name, Owner: "o", TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		for limit, whole := range map[int]bool{100: true, 5: true, 4: false, 0: true} {
			locks, more, err := d.List(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, o := range locks {
				got = append(got, o.Name)
				if o.Owner != "o" || o.Holder != "h" || o.Token == 0 || o.Left <= 0 || o.Waiters != (i+1)%2 {
					t.Errorf("lock %q: %+v", o.Name, o)
				}
			}
			if !slices.Equal(got, want[:min(cmp.Or(limit, len(want)), len(want))]) || more == whole {
				t.Errorf("at most %d: got %q, more %t; want %q", limit, got, more, want)
			}
		}
		locks, more, err := NewDriver(wrapped{c}, Config{Namespace: "n*[s]"}).List(t.Context(), 100)
		if len(locks) != len(want) || more || err != nil {
			t.Errorf("over a client in another type: %d locks, more %t, %v", len(locks), more, err)
		}
		d.HangUp()
	}
}
