package scheduler_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A node whose client was closed by the program ends with an error that names the cause, at once or
// when the program stops the node.
func TestClientIsClosedUnderANode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		for _, stops := range []bool{false, true} {
			client := server.Client()
			s := &sink{}
			reg := jobs.NewRegistry()
			closed := make(chan struct{})
			reg.MustAdd(jobs.Job{Name: "a", Schedule: "* * * * * *", TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
				s.write(r)
				<-closed // until then a stopped node waits for the run
				return nil
			}})
			node, err := scheduler.New(client, reg, scheduler.Config{Name: "n", Partitions: partitions, Logger: slog.New(slog.NewTextHandler(io.Writer(c.logs), nil))})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- node.Run(ctx) }()
			for end := time.Now().Add(time.Minute); len(s.all()) == 0 && time.Now().Before(end); { // the node before has left its records
				time.Sleep(time.Second)
			}
			if len(s.all()) == 0 {
				t.Error("it does not run")
			}
			if stops {
				stop()
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			close(closed)
			select {
			case err := <-ended:
				if !errors.Is(err, redis.ErrClosed) || !strings.Contains(err.Error(), "close the client after Run has returned") {
					t.Errorf("stopped %t: Run returned %v", stops, err)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("Run goes on with a client that is closed")
			}
			stop()
		}
	})
}
