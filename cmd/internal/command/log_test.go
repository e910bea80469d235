package command

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/config"
)

// TestLogFormats has the same lines for programs and for people, without colours.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json":    `"after_ms":1.234,"lag_ms":1500,`,
		"auto":    `"message":"hello"`, // not a terminal
		"console": "INF hello after=1.234ms lag=1.5s",
	} {
		var out strings.Builder
		log := newLogger(&out, config.Log{Level: "info", Format: format})
		log.Debug("hidden")
		log.With("after", 1234*time.Microsecond).Info("hello", "lag", 1500*time.Millisecond)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "hidden") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: got %q, want %q in it", format, out.String(), want)
		}
	}
}
