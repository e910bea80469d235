package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs/cron"
)

const layout = "2006-01-02T15:04:05.999Z07:00"

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fataler is what a test, a benchmark and a property have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func parse(t fataler, expr, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr, zone)
	if err != nil {
		t.Fatalf("%q in %q: %v", expr, zone, err)
	}
	return s
}

// ticks lists the next ticks after an instant as text, in UTC.
func ticks(s *cron.Schedule, after time.Time, n int) string {
	var out []string
	for range n {
		after = s.Next(after)
		if after.IsZero() {
			return strings.Join(append(out, "never"), " ")
		}
		out = append(out, after.Format(layout))
	}
	return strings.Join(out, " ")
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expr, zone, after, want string }{
		{"*/5 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z 2026-01-01T00:10:00Z"},
		{"*/5 * * * *", "", "2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00Z"},
		{"*/20 * * * * *", "", "2026-01-01T00:00:20.5Z", "2026-01-01T00:00:40Z 2026-01-01T00:01:00Z"},
		{"0 9 * * MON-FRI", "", "2026-01-02T10:00:00Z", "2026-01-05T09:00:00Z 2026-01-06T09:00:00Z"},
		{"0 0 29 2 *", "", "1896-03-01T00:00:00Z", "1904-02-29T00:00:00Z"},
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"30 12 31 * *", "", "2026-03-31T12:30:00Z", "2026-05-31T12:30:00Z 2026-07-31T12:30:00Z"},
		// Both day fields restricted: either is enough. One with a star: both count.
		{"0 0 13 * 5", "", "2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-20T00:00:00Z"},
		{"0 0 ? * sun", "", "2026-02-06T00:00:00Z", "2026-02-08T00:00:00Z"},
		{"0 0 * * 7", "", "2026-02-06T00:00:00Z", "2026-02-08T00:00:00Z 2026-02-15T00:00:00Z"},
		{"0 0 * * sat-sun", "", "2026-02-06T00:00:00Z", "2026-02-07T00:00:00Z 2026-02-08T00:00:00Z 2026-02-14T00:00:00Z"},
		{"0 0 * * 5-7/2", "", "2026-02-06T00:00:00Z", "2026-02-08T00:00:00Z 2026-02-13T00:00:00Z 2026-02-15T00:00:00Z"},
		{"5/25 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z 2026-01-01T00:30:00Z 2026-01-01T00:55:00Z"},
		{"0 9 31 12 *", "Europe/Berlin", "2040-01-01T00:00:00Z", "2040-12-31T08:00:00Z 2041-12-31T08:00:00Z"},
		{"@yearly", "", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"@monthly", "", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"@weekly", "", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"@daily", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"@hourly", "", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		{"0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T03:30:00Z"},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"  TZ=Asia/Tokyo \t0  9 * * *\n", "Asia/Tokyo", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		// @every is anchored to 1970-01-01T00:00:00Z, not to a start.
		{"@every 90s", "", "2026-01-01T00:00:01Z", "2026-01-01T00:01:30Z 2026-01-01T00:03:00Z"},
		{"@every 7h", "", "1970-01-01T00:00:00Z", "1970-01-01T07:00:00Z 1970-01-01T14:00:00Z"},
		{"@every 100ms", "", "1969-12-31T23:59:59.95Z", "1970-01-01T00:00:00Z 1970-01-01T00:00:00.1Z"},
		{"@every 1h", "", "1969-12-31T21:30:00Z", "1969-12-31T22:00:00Z 1969-12-31T23:00:00Z 1970-01-01T00:00:00Z"},
		// The search ends with the year 9999 and begins with the year 1.
		{"@daily", "", "9999-12-30T12:00:00Z", "9999-12-31T00:00:00Z never"},
		{"@every 8760h", "", "9999-12-31T00:00:00Z", "never"},
	} {
		s := parse(t, c.expr, c.zone)
		if got := ticks(s, at(t, c.after), strings.Count(c.want, " ")+1); got != c.want {
			t.Errorf("%s %s after %s:\n got %s\nwant %s", c.expr, c.zone, c.after, got, c.want)
		}
	}
}

// Fixed times fire at the first instant the wall clock has reached them, once; interval
// schedules fire whenever the wall clock matches.
func TestNextOverClockChanges(t *testing.T) {
	for _, c := range []struct{ name, expr, zone, after, want string }{
		{"gap, fixed", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"gap, fixed time at its end", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			"2026-03-29T01:00:00Z 2026-03-30T00:00:00Z 2026-03-30T01:00:00Z"},
		{"gap, interval", "*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z 2026-03-30T00:30:00Z"},
		{"repeat, fixed, asked inside it", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z"},
		{"repeat, interval", "*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			"2026-10-25T00:00:00Z 2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z 2026-10-26T01:00:00Z"},
		{"midnight left out", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z 2018-11-05T02:00:00Z"},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"a whole day left out", "0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			"2011-12-29T19:00:00Z 2011-12-30T10:00:00Z 2011-12-30T19:00:00Z"},
		{"a whole day twice", "0 9 * * *", "Pacific/Kwajalein", "1969-09-29T12:00:00Z",
			"1969-09-29T22:00:00Z 1969-10-01T21:00:00Z 1969-10-02T21:00:00Z"},
	} {
		s := parse(t, c.expr, c.zone)
		if got := ticks(s, at(t, c.after), strings.Count(c.want, " ")+1); got != c.want {
			t.Errorf("%s: %s %s after %s:\n got %s\nwant %s", c.name, c.expr, c.zone, c.after, got, c.want)
		}
		want := strings.Fields(c.want)
		end := at(t, want[len(want)-1])
		if n, last := s.Count(at(t, c.after), end.Add(time.Nanosecond)); n != len(want) || !last.Equal(end) {
			t.Errorf("%s: Count is %d up to %v, want %d", c.name, n, last, len(want))
		}
	}
}

func TestParseScheduleRefuses(t *testing.T) {
	for _, c := range []struct{ expr, zone, words string }{
		{"", "", "is empty"},
		{"* * * *", "", "has 4 fields; 5 are needed"},
		{"60 * * * *", "", `minute "60"`},
		{"* * * * 8", "", `day of week "8": 8 is outside 0 to 7`},
		{"* * * * 7-1", "", "the range 7-1 is backwards"},
		{"* * * * fri-mon", "", "the range fri-mon is backwards"},
		{"* * * jan-foo *", "", `"foo" is not a month; the names are JAN to DEC, or in full`},
		{"* * * sept *", "", `"sept" is not a month`},
		{"* * * * friday-monday", "", "the range friday-monday is backwards; write its lower value first, or its two parts: 5-6,0-1"},
		{"61 25 32 13 8", "", `month "13"`}, // and the other four
		{"5-1 * * * *", "", "the range 5-1 is backwards; write its lower value first"},
		{"*/0 * * * *", "", "step 0 is not a step"},
		{"*/90 * * * *", "", "step 90 is larger than the field, which has 60 values"},
		{", * * * *", "", "empty element in its list"},
		{"1,,2 * * * *", "", "empty element in its list"},
		{"*-5 * * * *", "", "is not a value"},
		{"1/2/3 * * * *", "", "is not a value"},
		{"* * * jän *", "", "is not a value"},
		{"jan * * * *", "", `minute "jan"`},
		{"H * * * *", "", "H needs the job's name"},
		{"0 0 30 2 *", "", "never fires"},
		{"@reboot", "", "descriptor is not known; use one of @yearly"},
		{"@hourly 5", "", "descriptor is not known"},
		{"@every 1w", "", `"1w" is not a duration; use numbers with d, h, m, s or ms, such as 1h30m or 2d`},
		{"@every 366d", "", "is outside 100ms to 8760h"},
		{"0 22-2 * * *", "", "the range 22-2 is backwards; write its lower value first, or its two parts: 22-23,0-2"},
		{"0 23-2 * * *", "", "or its two parts: 23,0-2"},
		{"0 0 * * 7-2", "", "or its two parts: 0-2"},
		{"@every 99ms", "", "is outside 100ms to 8760h"},
		{"@every 3000000h", "", `"3000000h" is outside 100ms to 8760h`},
		{"@every 100.5ms", "", "whole number of milliseconds"},
		{"TZ=", "", "must be followed by a zone"},
		{"CRON_TZ=UTC", "", "must be followed by a zone"},
		{"TZ=0 * * * * *", "", `time zone "0" is not a zone name`},
		{"TZ=Local * * * * *", "", "differs from node to node"},
		{"TZ=Asia/Tokyo * * * * *", "UTC", "names the zone Asia/Tokyo and the job names UTC"},
		{"* * * * *", "local", "differs from node to node"},
		{"* * * * *", "Mars/Olympus", "is not known"},
		{"* * * * *", "../../etc/passwd", "is not a zone name"},
		{strings.Repeat("1,", 150) + "1 * * * *", "", "is longer than 256"},
	} {
		s, err := cron.Parse(c.expr, c.zone)
		if err == nil || s != nil {
			t.Errorf("%q in %q is accepted as %v", c.expr, c.zone, s)
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.words) || strings.Contains(text, "\n") || len(text) > 400 {
			t.Errorf("%q in %q: %q, want %q in it, on one short line", c.expr, c.zone, text, c.words)
		}
	}
}

// Names and letters may be in any case and names in full; the ticks are the same as in the usual form.
func TestAnyCase(t *testing.T) {
	for expr, usual := range map[string]string{
		"0 9 l * *": "0 9 L * *", "0 9 l-3 * *": "0 9 L-3 * *", "0 9 15w,lw * *": "0 9 15W,LW * *", "0 9 * * fril": "0 9 * * 5L", "0 9 * * FridayL": "0 9 * * 5L",
		"0 9 * * tuesday#2": "0 9 * * 2#2", "0 9 * * friday": "0 9 * * 5", "0 9 * * Monday-fri": "0 9 * * 1-5", "0 9 * * friday-sunday/2": "0 9 * * 5,0",
		"0 9 * * sun,SATURDAY": "0 9 * * 0,6", "0 9 1 january,MARCH-may/2 *": "0 9 1 1,3,5 *", "0 9 1 september/2 *": "0 9 1 9,11 *", "0 9 1 mar,Dec *": "0 9 1 3,12 *",
		"@Daily": "@daily", "@HOURLY": "@hourly", "@Every 1d": "@every 24h", "@every 1d12h": "@every 36h", "@every 2d30s": "@every 172830s",
		"h h(9-17)/3 h * h(Monday-friday)": "H H(9-17)/3 H * H(1-5)", "0 0 * * THURSDAY": "0 0 * * 4",
	} {
		s, err := cron.ParseFor("a", expr, "")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		want, err := cron.ParseFor("a", usual, "")
		if err != nil {
			t.Fatal(err)
		}
		from := at(t, "2026-01-01T00:00:00Z")
		if got, want := ticks(s, from, 30), ticks(want, from, 30); got != want || s.String() != expr {
			t.Errorf("%s: %s of %s, want %s", expr, got, s, want)
		}
	}
}

func TestScheduleString(t *testing.T) {
	for _, c := range []struct{ expr, zone, want string }{
		{"*/5  * * *\t*", "", "*/5 * * * *"},
		{"0 5 * * *", "Europe/Berlin", "CRON_TZ=Europe/Berlin 0 5 * * *"},
		{"TZ=Europe/Berlin 0 5 * * *", "", "CRON_TZ=Europe/Berlin 0 5 * * *"},
		{"TZ=UTC @daily", "", "@daily"},
		{"CRON_TZ=Asia/Tokyo @every  90s", "", "@every 90s"},
		{strings.Repeat("1,", 123) + "1 1 1 1 1 ", "Asia/Tokyo", "CRON_TZ=Asia/Tokyo " + strings.Repeat("1,", 123) + "1 1 1 1 1"}, // longer than a schedule may be, with its zone
	} {
		if got := parse(t, c.expr, c.zone).String(); got != c.want || parse(t, got, "").String() != got {
			t.Errorf("%q in %q: %q, want %q and that it is read back", c.expr, c.zone, got, c.want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, expr, zone string }{
		{"second", "* * * * * *", ""}, {"daily-zone", "0 5 * * *", "Europe/Berlin"}, {"leap-day", "0 0 29 2 *", ""},
		{"every", "@every 90s", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, when := parse(b, c.expr, c.zone), time.Unix(1_770_000_000, 0)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(when)
			}
		})
	}
}

func BenchmarkParseSchedule(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		parse(b, "*/5 9-17 * * MON-FRI", "Europe/Berlin")
	}
}
