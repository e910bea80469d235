package redsynclock_test

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	redsync "github.com/escapement/escapement/locking/redsynclock" // was: github.com/go-redsync/redsync/v4
)

func Example() {
	server, err := redistest.Embed() // in your program: a Redis of yours
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := server.Client() // redis.NewClient with MaxRetries: -1, ContextTimeoutEnabled: true
	defer client.Close()
	locker := redislock.New(client, redislock.Config{}) // one for the process
	defer locker.Close()

	rs := redsync.New(locker) // was: redsync.New(goredis.NewPool(client))

	mutex := rs.NewMutex("order:42", redsync.WithExpiry(10*time.Second))
	if err := mutex.Lock(); err != nil {
		panic(err)
	}
	// New: work under mutex.Context(), and send mutex.Token() with each write.
	fmt.Println("token:", mutex.Token() > 0, "context:", mutex.Context().Err())

	fmt.Println("second:", rs.NewMutex("order:42").TryLock() != nil)
	fmt.Println(mutex.Extend())
	fmt.Println(mutex.Unlock())
	fmt.Println("context:", mutex.Context().Err())
	// Output:
	// token: true context: <nil>
	// second: true
	// true <nil>
	// true <nil>
	// context: context canceled
}
