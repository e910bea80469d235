package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// attributes are a span's, as texts.
func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// A node runs an HTTP job: the server sees the trace of the run's span.
func TestTraceReachesTheServer(t *testing.T) {
	seen := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("traceparent") }))
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	_, client := redistest.StartEmbedded(t)
	call, err := httpjob.New(httpjob.Options{URL: server.URL, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: "call", Schedule: "* * * * * *", Func: call})
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a", Middleware: Traced(tracer), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	var header string
	select {
	case header = <-seen:
	case <-time.After(3 * time.Minute):
		t.Error("the server was not called")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(spans.Ended()) == 0 {
		t.Fatal("no span")
	}
	s := spans.Ended()[0]
	if want := "00-" + s.SpanContext().TraceID().String() + "-" + s.SpanContext().SpanID().String() + "-01"; header != want {
		t.Errorf("the server saw %q, want %q", header, want)
	}
	got := attributes(s)
	tick, err := time.Parse(time.RFC3339Nano, got["escapement.tick"])
	if s.Name() != "call" || got["escapement.outcome"] != "succeeded" || got["escapement.attempt"] != "1" || got["escapement.run"] == "" || err != nil || tick.IsZero() {
		t.Errorf("span %s with %v", s.Name(), got)
	}
}

func TestOutcomes(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	for _, tt := range []struct {
		cause, err error
		want       string
	}{
		{nil, nil, "succeeded"},
		{nil, errors.New("no paper"), "failed"},
		{jobs.ErrTimeout, context.Canceled, "timed_out"},
		{jobs.ErrTimeout, nil, "succeeded"}, // it finished all the same
		{jobs.ErrReplaced, context.Canceled, "cancelled"},
		{scheduler.ErrDraining, context.Canceled, "cancelled"},
		{locking.ErrLeaseLost, context.Canceled, "lost"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := Traced(tracer)(func(context.Context, *jobs.Run) error {
			if tt.cause != nil {
				cancel(tt.cause)
			}
			return tt.err
		})
		if err := f(ctx, jobs.NewRun(jobs.RunInfo{Job: "job"})); !errors.Is(err, tt.err) {
			t.Errorf("%v: the function's error became %v", tt.err, err)
		}
		cancel(nil)
		s := spans.Ended()[len(spans.Ended())-1]
		if got := attributes(s)["escapement.outcome"]; got != tt.want || (s.Status().Code == codes.Error) != (tt.err != nil) {
			t.Errorf("%v, %v: outcome %s, status %v", tt.cause, tt.err, got, s.Status())
		}
	}
}

// A panic ends the span, and is the scheduler's to catch.
func TestPanic(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	defer func() {
		if recover() == nil || len(spans.Ended()) != 1 || attributes(spans.Ended()[0])["escapement.outcome"] != "failed" {
			t.Errorf("spans %v", spans.Ended())
		}
	}()
	_ = Traced(tracer)(func(context.Context, *jobs.Run) error { panic("no paper") })(t.Context(), jobs.NewRun(jobs.RunInfo{}))
}
