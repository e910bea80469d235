package command

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"
)

// millisHandler writes durations as numbers of milliseconds, under keys that end in _ms:
// "lag_ms":1.2. Programs read them so everywhere.
type millisHandler struct{ slog.Handler }

// Handle passes the record on.
func (h millisHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(inMillis(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs is as of slog.Handler.
func (h millisHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i, a := range attrs {
		attrs[i] = inMillis(a)
	}
	return millisHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup is as of slog.Handler.
func (h millisHandler) WithGroup(name string) slog.Handler {
	return millisHandler{h.Handler.WithGroup(name)}
}

// inMillis is a duration in milliseconds, to the microsecond; any other value is unchanged.
func inMillis(a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	ms := float64(a.Value.Duration()) / float64(time.Millisecond)
	return slog.Float64(a.Key+"_ms", math.Round(ms*1000)/1000)
}
