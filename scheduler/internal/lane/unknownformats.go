package lane

import (
	"log/slog"
	"time"
)

// UnknownFormats logs how many records have a format that this version does not know: at a change,
// at most every logEvery. One role uses it.
type UnknownFormats struct {
	Log    *slog.Logger
	count  int
	logged time.Time
}

// Note notes that there are n such records.
func (s *UnknownFormats) Note(n int, what string) {
	if n == 0 || n == s.count || time.Since(s.logged) < logEvery {
		return
	}
	s.count, s.logged = n, time.Now()
	s.Log.Warn("records have a format that this version does not know; they are left alone; if no newer node wrote them, remove them by hand", "where", what, "records", n)
}
