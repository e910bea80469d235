// Command node is one machine of TestThreeNodes: an ordinary cron, made once-only by one line. It posts each run to the
// sink, and ends when its standard input does.
//
//	node REDIS SINK NAME
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/cronlock"
	"github.com/escapement/escapement/locking/redislock"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Args[1], MaxRetries: -1, ContextTimeoutEnabled: true})
	locker := redislock.New(client, redislock.Config{Margin: 200 * time.Millisecond})
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", os.Args[3])

	c := cron.New(cron.WithSeconds(),
		cronlock.Once("nodes", locker, client, cronlock.Config{Lock: locking.Options{TTL: time.Second}, Logger: logger}))

	must(c.AddFunc("* * * * * *", plain))
	must(c.AddJob("* * * * * *", cronlock.Named("fenced", func(ctx context.Context, run cronlock.Run) {
		post(ctx, url.Values{"entry": {run.Name}, "tick": {run.Tick.Format(time.RFC3339Nano)}, "token": {fmt.Sprint(run.Token)}})
		select { // long enough for a kill
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	})))
	c.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// plain is a job as a cron without this library has it.
func plain() { post(context.Background(), url.Values{"entry": {"plain"}}) }

func post(ctx context.Context, run url.Values) {
	run.Set("node", os.Args[3])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Args[2]+"?"+run.Encode(), nil)
	if err != nil {
		panic(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		slog.Error("post", "error", err)
		return
	}
	_ = response.Body.Close()
}

func must(_ cron.EntryID, err error) {
	if err != nil {
		panic(err)
	}
}
