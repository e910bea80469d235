package command

import (
	"context"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// setZerolog sets zerolog's settings of the whole process, which every logger here shares.
var setZerolog = sync.OnceFunc(func() {
	zerolog.TimeFieldFormat = spec.TimeLayout
	zerolog.DurationFieldFormat = zerolog.DurationFormatString // with its unit, for people: lag=1.2ms
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
})

// Logger returns the log of a command that runs by a configuration.
func (a *App) Logger(cfg config.Log) *slog.Logger { return newLogger(a.Stderr, cfg) }

// newLogger writes to w by zerolog, as people or programs like to read it; auto
// looks whether w is a terminal.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	setZerolog()
	if o, ok := w.(*logWriter); ok {
		o.setFormat(cfg)
	}
	console := cfg.Format == "console" || cfg.Format == "auto" && print.IsTerminal(w)
	if console {
		w = zerolog.ConsoleWriter{Out: w, NoColor: true, TimeFormat: "15:04:05.000", TimeLocation: time.UTC}
	}
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil { // a test ensures that zerolog has the words of Log.Level
		level = zerolog.InfoLevel
	}
	var handler slog.Handler = zerolog.NewSlogHandler(zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger())
	if !console {
		handler = millisHandler{handler}
	}
	return slog.New(handler)
}

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
