//go:build !race

package jobs_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"pgregory.net/rapid"
)

func TestScheduleAgreesWithItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, near := drawSchedule(t)
		from := near.Unix() - rapid.Int64Range(0, 26*3600).Draw(t, "before")
		before := near.Unix() + rapid.Int64Range(1, 26*3600).Draw(t, "after")
		const lead = 30 * 3600 // long enough to know how high the wall clock has been
		want, gaps := w.ticks(newWallClock(w.zone, from-lead, before, 1), from)
		compare(t, s, from, before, want)
		for i, sec := range want {
			if got := s.Note(time.Unix(sec, 0)) == jobs.NoteGap; got != gaps[i] {
				t.Fatalf("%s: %v stands in for others: %v, want %v", s, time.Unix(sec, 0).UTC(), got, gaps[i])
			}
		}
	})
}
