package ops

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestPreview: the next ticks, and the ticks around the next changes of the clock, however far
// ahead.
func TestPreview(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	const forward, back = "2027-03-28T02:00:00+01:00 > 2027-03-28T03:00:00+02:00", "2027-10-31T03:00:00+02:00 > 2027-10-31T02:00:00+01:00"
	for _, tt := range []struct {
		job     jobs.Job
		first   string // tick, local
		changes []string
	}{
		{jobs.Job{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}, "2026-11-27T02:30:00+01:00", []string{
			forward + ": 2027-03-28T03:00:00+02:00 gap: the clock goes from 02:00 to 03:00; this tick stands in",
			back + ": 2027-10-31T02:30:00+02:00 fold: 02:30 comes twice; this is the first, the other does not run",
		}},
		{jobs.Job{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Jitter: time.Minute, Name: "x"}, "2026-11-27T02:30:04.529+01:00", []string{
			forward + ": 2027-03-28T03:00:04.529+02:00 gap: the clock goes from 02:00 to 03:00; this tick stands in",
			back + ": 2027-10-31T02:30:04.529+02:00 fold: 02:30 comes twice; this is the first, the other does not run",
		}},
		{jobs.Job{Schedule: "* * * * * *", TimeZone: "Europe/Berlin", Jitter: 24 * time.Hour, Name: "x"}, "2026-11-26T13:00:00.529+01:00", []string{
			forward + ":", back + ": 2027-10-31T18:53:04.529+01:00 fold: 02:00 comes twice; this is the first" +
				" 2027-10-31T18:53:05.529+01:00 fold: 02:00 comes twice; this is the first 2027-10-31T18:53:06.529+01:00 fold: 02:00 comes twice; this is the first",
		}},
		{jobs.Job{Schedule: "*/30 * * * *", TimeZone: "Europe/Berlin"}, "2026-11-26T13:30:00+01:00", []string{
			forward + ":", back + ": 2027-10-31T02:00:00+02:00 fold: 02:00 comes twice; this is the first" +
				" 2027-10-31T02:30:00+02:00 fold: 02:30 comes twice; this is the first 2027-10-31T02:00:00+01:00 fold: 02:00 comes twice; this is the second",
		}},
		{jobs.Job{Schedule: "0 12 * * *", TimeZone: "Europe/Berlin"}, "2026-11-27T12:00:00+01:00", []string{forward + ":", back + ":"}},
		{jobs.Job{Schedule: "0 12 * * *", TimeZone: "Asia/Tokyo"}, "2026-11-27T12:00:00+09:00", nil},
		{jobs.Job{Schedule: "@every 90s", TimeZone: "Europe/Berlin"}, "2026-11-26T13:01:30+01:00", nil},
		{jobs.Job{Schedule: "30 2 * * *", Except: []string{"2026-11-27..2026-12-01"}}, "2026-12-02T02:30:00Z", nil},
	} {
		p := preview(tt.job, now, 3)
		if len(p.Faults) > 0 || len(p.Ticks) != 3 || p.Ticks[0].Local != tt.first {
			t.Errorf("%s %s: got %+v", tt.job.Schedule, tt.job.TimeZone, p)
		}
		var changes []string
		for _, c := range p.Changes {
			text := c.From + " > " + c.To + ":"
			for _, tick := range c.Ticks {
				text += " " + tick.Local + " " + tick.Words
			}
			changes = append(changes, text)
		}
		if !slices.Equal(changes, tt.changes) {
			t.Errorf("%s %s: got\n%s", tt.job.Schedule, tt.job.TimeZone, strings.Join(changes, "\n"))
		}
	}
}

// TestPreviewWordsOfCrontab: the text names the difference to crontab(5) where the same schedule
// has other days there.
func TestPreviewWordsOfCrontab(t *testing.T) {
	for expr, want := range map[string]bool{"0 0 */2 * MON": true, "0 0 13 * FRI": false} {
		if p := preview(jobs.Job{Schedule: expr}, time.Now(), 1); strings.Contains(p.Words, "; in crontab(5) both day fields must match") != want {
			t.Errorf("%s: %s", expr, p.Words)
		}
	}
}

// TestPreviewFaults: the answer has the faults, with their fields; a job without a name is an
// example.
func TestPreviewFaults(t *testing.T) {
	for _, tt := range []struct {
		job    jobs.Job
		fields string
	}{
		{jobs.Job{Schedule: "61 * * * *"}, "schedule"},
		{jobs.Job{}, "schedule"},
		{jobs.Job{Schedule: "@hourly", TimeZone: "Mars/Base"}, "time_zone"},
		{jobs.Job{Schedule: "@hourly", Only: []string{"2026-01-01", "x"}}, "only[1]"},
		{jobs.Job{Name: "no name", Schedule: "@hourly"}, "name"},
		{jobs.Job{Schedule: "H H * * *", Payload: []byte("{")}, ""},
	} {
		p := preview(tt.job, time.Now(), 1)
		var fields []string
		for _, f := range p.Faults {
			fields = append(fields, f.Field)
			if f.Text == "" {
				t.Errorf("%+v", f)
			}
		}
		if strings.Join(fields, " ") != tt.fields || (len(p.Ticks) == 0) != (tt.fields != "") {
			t.Errorf("%+v: got %v and %d ticks", tt.job, p.Faults, len(p.Ticks))
		}
	}
}

func TestFaultsOf(t *testing.T) {
	field := &jobs.FieldError{Field: "retry.max", Msg: "too many"}
	err := errors.Join(errors.New("plain"), fmt.Errorf("%w: put job a: %w", ErrRefused, errors.Join(field, &jobs.FieldError{Field: "name", Msg: "odd"})))
	if got := FaultsOf(fmt.Errorf("put: %w", err)); !slices.Equal(got, []FaultView{{"retry.max", "too many"}, {"name", "odd"}}) {
		t.Errorf("got %v", got)
	}
	if got := FaultsOf(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
