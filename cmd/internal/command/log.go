package command

import (
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

// setZerolog sets zerolog's settings of the whole process, which every logger here shares.
var setZerolog = sync.OnceFunc(func() {
	zerolog.TimeFieldFormat = print.TimeFormat
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
