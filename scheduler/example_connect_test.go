package scheduler_test

import (
	"context"
	"fmt"
	"os"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A whole program: it runs its jobs on as many machines as it is started on, until ctx ends.
func ExampleRun() {
	url, end := startRedis()
	defer end()
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	err := scheduler.Run(ctx, url, jobs.Job{
		Name: "settle-orders", Schedule: "@every 1s",
		Func: func(_ context.Context, run *jobs.Run) error {
			fmt.Println("settling", run.Job())
			stop()
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// settling settle-orders
	// <nil>
}

// Every form of a Redis URL. The error for a bad URL does not contain the password.
func ExampleConnect() {
	for _, url := range []string{
		"redis://user:secret@localhost:6379/0",
		"rediss://localhost:6379/0?read_timeout=3s",
		"unix:///run/redis.sock",
		"redis+sentinel://:secret@s1,s2:26380/0?master_name=main",
		"redis+sentinel://s1,s2/main/0",
		"redis+cluster://user:secret@r1:6379,r2:6379/",
		"redis+clustre://user:secret@r1:6379/",
		"redis://user:sec/ret@localhost:6379/0",
	} {
		client, err := scheduler.Connect(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%T\n", client)
		_ = client.Close()
	}
	// Output:
	// *redis.Client
	// *redis.Client
	// *redis.Client
	// *redis.Client
	// *redis.Client
	// *redis.ClusterClient
	// scheduler: the Redis URL has the scheme redis+clustre, which is not one of redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster
	// scheduler: the Redis URL cannot be read; write redis://USER:PASSWORD@HOST:6379/0 and percent-encode what is special in the password ("@" is %40, "/" is %2F, "#" is %23)
}

// startRedis starts a Redis for an example and returns its URL.
func startRedis() (url string, end func()) {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		panic(err)
	}
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir})
	if err != nil {
		panic(err)
	}
	return "redis://" + server.Addr(), func() {
		if err := server.Kill(); err != nil {
			panic(err)
		}
		_ = os.RemoveAll(dir) // best effort: the directory is temporary
	}
}
