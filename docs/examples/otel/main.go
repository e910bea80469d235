// Program otel runs a node whose runs are traced with OpenTelemetry, and prints the spans. Its one job is a command, which
// gets the trace in TRACEPARENT.
//
//	go run . redis://localhost:6379
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
	"github.com/escapement/escapement/scheduler"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: otel redis://localhost:6379")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "otel:", err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}

func run(ctx context.Context, url string) error {
	exporter, err := stdouttrace.New() // in production: an OTLP exporter
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }()
	client, err := scheduler.Connect(url)
	if err != nil {
		return err
	}
	defer client.Close()
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name: "greet", Schedule: "@every 5s",
		Func: execjob.New(execjob.Command{Command: []string{"sh", "-c", `echo "traced as $TRACEPARENT"`}}),
	})
	node, err := scheduler.New(client, reg, scheduler.Config{Middleware: Traced(provider.Tracer("escapement"))})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}
