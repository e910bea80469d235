package cron

import (
	"testing"
	"time"
)

// TestNoteWords: words for each tick with a note, and for no other; a jitter does not change what the clock does.
func TestNoteWords(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, tt := range []struct{ expr, zone, tick, want string }{
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "gap: the clock goes from 02:00 to 03:00; this tick stands in"},
		{"30 2 * * * plus 5m", "Europe/Berlin", "2026-03-29T01:05:00Z", "gap: the clock goes from 02:00 to 03:00; this tick stands in"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z", ""},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "fold: 02:30 comes twice; this is the first, the other does not run"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", "fold: 02:30 comes twice; this is the second"},
		{"0 9 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", "gap: the clock goes from 2011-12-30 00:00 to 2011-12-31 00:00; this tick stands in"},
		{"30 2 * * *", "", "2026-03-29T02:30:00Z", ""},
	} {
		s, err := Parse(tt.expr, tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.NoteWords(at(tt.tick)); got != tt.want || (s.Note(at(tt.tick)) == "") != (got == "") {
			t.Errorf("%s at %s: got %q", tt.expr, tt.tick, got)
		}
	}
}
