package scheduler_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A node whose user may not ask for INFO notices no restart of Redis, and says so once when it starts.
func TestUserWithoutInfo(t *testing.T) {
	const words = "ACL SETUSER NAME +info"
	server := redistest.Start(t)
	if err := server.Client(t).Do(t.Context(), "acl", "setuser", "poor", "on", ">hunter2", "~*", "&*", "+@all", "-@dangerous").Err(); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"poor": 1, "": 0} {
		c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
			o := redistest.ClientOptions(server.Addr())
			if user != "" {
				o.Username, o.Password = user, "hunter2"
			}
			return redis.NewClient(o)
		}}
		n := c.start("n", scheduler.Config{}, eachSecond("job", &sink{}))
		for n.Ready() != nil {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-n.done:
				t.Fatal(n.err)
			}
		}
		c.end()
		if got := c.logs.count(words); got != want {
			t.Errorf("user %q: said %d times, want %d\n%s", user, got, want, c.logs.String())
		}
	}
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.start("n", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(5 * time.Second)
		if c.logs.count(words) != 0 {
			t.Error("said of the embedded Redis")
		}
	})
}
