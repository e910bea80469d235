package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

// Traced returns a scheduler.Config.Middleware that makes a span of each run; a retried run has a span
// for each try. The span's context reaches the function, and through jobs.WithTraceparent the commands
// and HTTP calls of execjob and httpjob. A panic of the function ends the span as failed, and goes on.
func Traced(tracer trace.Tracer) func(next jobs.Func) jobs.Func {
	return func(next jobs.Func) jobs.Func {
		return func(ctx context.Context, run *jobs.Run) (err error) {
			ctx, span := tracer.Start(ctx, run.Job(), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
				attribute.String("escapement.job", run.Job()),
				attribute.String("escapement.tick", run.Tick().Format(time.RFC3339Nano)),
				attribute.String("escapement.run", run.ID()),
				attribute.Int("escapement.attempt", run.Attempt()),
				attribute.Int("escapement.try", run.Try()),
				attribute.Int("escapement.shard", run.Shard()),
				attribute.Int64("escapement.token", run.Token()),
				attribute.String("escapement.node", run.Node()),
				attribute.String("escapement.trigger", run.Trigger().String()),
			))
			returned := false
			defer func() {
				if !returned {
					err = errors.New("the function panicked or ended its goroutine")
				}
				outcome := outcomeOf(ctx, err)
				span.SetAttributes(attribute.String("escapement.outcome", outcome.String()))
				if err != nil {
					span.RecordError(err)
					span.SetStatus(codes.Error, outcome.String())
				}
				span.End()
			}()
			carrier := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(ctx, carrier)
			err = next(jobs.WithTraceparent(ctx, carrier.Get("traceparent")), run)
			returned = true
			return err
		}
	}
}

// outcomeOf returns the outcome of a try, from its error and its context, by the scheduler's rule. The
// last try's outcome is the run's.
func outcomeOf(ctx context.Context, err error) jobs.Outcome {
	switch cause := context.Cause(ctx); {
	case err == nil:
		return jobs.OutcomeSucceeded
	case errors.Is(cause, locking.ErrLeaseLost):
		return jobs.OutcomeLost
	case errors.Is(cause, jobs.ErrTimeout):
		return jobs.OutcomeTimedOut
	case errors.Is(cause, jobs.ErrCancelled), errors.Is(cause, jobs.ErrReplaced), errors.Is(cause, scheduler.ErrDraining):
		return jobs.OutcomeCancelled
	}
	return jobs.OutcomeFailed
}
