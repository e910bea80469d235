package jobs

import (
	"context"
	"regexp"
	"strings"
)

type traceparentKey struct{}

// traceparentPattern is the format of W3C Trace Context, version 00: version, trace, parent and flags.
var traceparentPattern = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// WithTraceparent returns a context that carries a trace to what a job calls, for a scheduler's Middleware that traces
// runs: execjob sets TRACEPARENT, httpjob the header traceparent. The value is that of the W3C header, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. Any other value, and one whose trace or parent is only
// zeros, is not carried: ctx is returned.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	parts := traceparentPattern.FindStringSubmatch(traceparent)
	if parts == nil || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ctx
	}
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// Traceparent returns what WithTraceparent put into ctx or a parent of it, "" for nothing.
func Traceparent(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceparentKey{}).(string)
	return traceparent
}
