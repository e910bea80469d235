package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A web handler that runs a job with what it was sent, wherever a node is free, and answers when
// the run has ended.
func ExampleClient() {
	redis, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client() // in production: scheduler.Connect("redis://localhost:6379")
	defer client.Close()
	_, stop := startReports(scheduler.Config{Name: "a1"}, redis)
	defer stop()

	admin, err := ops.New(client, "escapement")
	if err != nil {
		panic(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, err := admin.Trigger(r.Context(), "report", ops.TriggerOptions{Payload: payload})
		if errors.Is(err, ops.ErrRefused) {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		run, err := admin.WaitRun(r.Context(), id) // until it has ended, or the caller has gone
		if err != nil {
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
			return
		}
		if run.Outcome != jobs.OutcomeSucceeded {
			w.WriteHeader(http.StatusBadGateway)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"outcome": run.Outcome.String(), "output": run.Output, "error": run.Error})
	})

	for _, body := range []string{`{"month": "May"}`, `{"moon": "May"}`, `May`} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/reports", strings.NewReader(body)))
		fmt.Print(answer.Code, " ", answer.Body)
	}
	// Output:
	// 200 {"error":"","outcome":"succeeded","output":"the report of May"}
	// 502 {"error":"payload.moon: is not a field of it; leave it out, or correct its name","outcome":"failed","output":""}
	// 400 refused: run report: the payload is not JSON; quote a plain text: '"text"'
}

// A middleware wraps every run of all jobs: here in a span of a trace.
func ExampleConfig_middleware() {
	redis, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client()
	defer client.Close()
	_, stop := startReports(scheduler.Config{
		Name: "a1",
		Middleware: func(next jobs.Func) jobs.Func {
			return func(ctx context.Context, run *jobs.Run) error {
				fmt.Println("begin", run.Job())
				err := next(ctx, run)
				fmt.Println("end", run.Job(), err)
				return err
			}
		},
	}, redis)
	admin, err := ops.New(client, "escapement")
	if err != nil {
		panic(err)
	}
	id, err := admin.Trigger(context.Background(), "report", ops.TriggerOptions{Payload: []byte(`{"month": 5}`)})
	if err != nil {
		panic(err)
	}
	run, err := admin.WaitRun(context.Background(), id)
	fmt.Println(run.Outcome, err)
	stop()
	// Output:
	// begin report
	// end report payload.month: is a JSON number; its type is string
	// failed <nil>
}

// startReports starts a node that makes reports, waits until its job is there, and returns what
// stops it.
func startReports(cfg scheduler.Config, redis *redistest.Embedded) (node *scheduler.Node, stop func()) {
	client, reg := redis.Client(), jobs.NewRegistry()
	type report struct {
		Month string `json:"month"`
	}
	reg.MustAdd(jobs.Job{
		Name: "report", Schedule: "@yearly",
		Func: jobs.Typed(func(_ context.Context, run *jobs.Run, in report) error {
			fmt.Fprint(run.Output(), "the report of ", in.Month)
			return nil
		}),
	})
	cfg.Logger = slog.New(slog.DiscardHandler)
	node, err := scheduler.New(client, reg, cfg)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	for node.Ready() != nil {
		select {
		case err := <-ended:
			panic(err)
		case <-time.After(time.Millisecond):
		}
	}
	return node, func() {
		cancel()
		if err := <-ended; err != nil {
			panic(err)
		}
		_ = client.Close() // nothing uses it any more
	}
}
