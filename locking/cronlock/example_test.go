package cronlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/cronlock"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// Two crons with the same entries, as on two machines. One line makes them once-only.
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

	ran := make(chan time.Time, 10)
	machine := func() *cron.Cron {
		c := cron.New(cron.WithSeconds(),
			cronlock.Once("billing", locker, client, cronlock.Config{Lock: locking.Options{Holder: "host-3"}})) // this line
		_, err := c.AddJob("* * * * * *", cronlock.Named("report", func(ctx context.Context, run cronlock.Run) {
			if ctx.Err() == nil && run.Token > 0 { // send run.Token with each write
				ran <- run.Tick
			}
		}))
		if err != nil {
			panic(err)
		}
		c.Start()
		return c
	}
	a, b := machine(), machine()
	first, second := <-ran, <-ran
	<-a.Stop().Done() // jobs that run go on to their end
	<-b.Stop().Done()
	fmt.Println("between two runs:", second.Sub(first))
	// Output:
	// between two runs: 1s
}

// The functions of a cron that exists stay as they are.
func ExampleOnce() {
	server, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()

	c := cron.New(cronlock.Once("billing", locker, client, cronlock.Config{
		Chain: []cron.JobWrapper{cron.Recover(cron.DefaultLogger)}, // the former argument of cron.WithChain
	}))
	_, err = c.AddFunc("*/5 * * * *", closeDay) // named after the function
	fmt.Println(err)
	// Output:
	// <nil>
}

func closeDay() {}
