package gocronlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/gocronlock"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

func ExampleElector() {
	server, err := redistest.Embed() // in your program: a Redis of yours
	check(err)
	defer server.Close()
	client := server.Client() // redis.NewClient with MaxRetries: -1, ContextTimeoutEnabled: true
	defer client.Close()
	locker := redislock.New(client, redislock.Config{}) // one for the process
	defer locker.Close()

	elector, err := gocronlock.NewElector("billing", locker, gocronlock.ElectorConfig{Holder: "host-3"})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- elector.Run(ctx) }()

	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	check(err)
	ran := make(chan bool, 10)
	_, err = s.NewJob(gocron.DurationJob(100*time.Millisecond), gocron.NewTask(func() {
		if lease := elector.Lease(); lease != nil {
			ran <- lease.Token() > 0 // send lease.Token() with each write, under lease.Context()
		}
	}), gocron.WithName("report"))
	check(err)
	s.Start()
	fmt.Println("ran with a token:", <-ran)

	check(s.Shutdown())
	cancel() // another machine is the leader at once
	fmt.Println(<-ended)
	// Output:
	// ran with a token: true
	// <nil>
}

func ExampleLocker() {
	server, err := redistest.Embed()
	check(err)
	defer server.Close()
	client := server.Client()
	defer client.Close()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()

	// The clocks of the machines differ by less than two seconds, and each job's interval is
	// longer.
	jobs, err := gocronlock.NewLocker("billing", locker, 2*time.Second, locking.Options{})
	check(err)
	ran := make(chan struct{}, 10)
	machine := func() gocron.Scheduler {
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(jobs))
		check(err)
		_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { ran <- struct{}{} }), gocron.WithName("report"))
		check(err)
		s.Start()
		return s
	}
	a, b := machine(), machine()
	<-ran
	check(a.Shutdown()) // waits for jobs
	check(b.Shutdown())
	fmt.Println("more runs:", len(ran))
	check(locker.ReleaseAll(context.Background())) // before locker.Close
	// Output:
	// more runs: 0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
