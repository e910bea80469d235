package cron_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ expr, zone, want string }{
		{"* * * * *", "", "every minute, UTC"},
		{"*/5 * * * *", "", "every 5 minutes, UTC"},
		{"5-59/15 * * * *", "", "every 15 minutes, starting at 00:05, UTC"},
		{"0 * * * *", "", "every hour at minute 0, UTC"},
		{"0 */7 * * *", "", "every 7 hours from 00:00 to 21:00, every day, UTC"},
		{"*/7 * * * *", "", "at every 7th minute from 0 to 56 of every hour, UTC"},
		{"0,20,50 * * * *", "", "at minutes 0, 20 and 50 of every hour, UTC"},
		{"*/5 9-17 * * MON-FRI", "America/New_York", "every 5 minutes from 09:00 to 17:55, on Monday to Friday, America/New_York time"},
		{"0 9-17 * * *", "", "every hour from 09:00 to 17:00, every day, UTC"},
		{"*/5 9,14 * * *", "", "every 5 minutes, in hours 09 and 14, every day, UTC"},
		{"7-59/15 9,14,20 * * *", "", "every 15 minutes from minute 7 on, in hours 09, 14 and 20, every day, UTC"},
		{"*/20 9,14 * * *", "", "at 09:00, 09:20, 09:40, 14:00, 14:20 and 14:40, every day, UTC"},
		{"1,2 */2 * * *", "", "at minutes 1 and 2, in every 2nd hour from 00 to 22, every day, UTC"},
		{"5,25 3,9 * * * *", "", "at seconds 5 and 25, in minutes 3 and 9 of every hour, UTC"},
		{"* 3,9 * * * *", "", "every second, in minutes 3 and 9 of every hour, UTC"},
		{"30 9 * * *", "", "at 09:30, every day, UTC"},
		{"15 30 9 * * *", "", "at 09:30:15, every day, UTC"},
		{"0 8,10,12,15 * * 0,6", "", "at 08:00, 10:00, 12:00 and 15:00, on Saturday and Sunday, UTC"},
		{"0 0 * * 0,1,3,5-6", "", "at 00:00, on Monday, Wednesday and Friday to Sunday, UTC"},
		{"0 0 1,15 * *", "", "at 00:00, on days 1 and 15 of the month, UTC"},
		{"0 0 28-31 4-6 *", "", "at 00:00, on days 28 to 31 of the month (where the month has them), in April to June, UTC"},
		{"0 0 1 1 *", "", "at 00:00, on 1 January, UTC"},
		{"0 0 30 2,3 *", "", "at 00:00, on 30 March, UTC"},
		{"0 0 29 2 *", "", "at 00:00, on 29 February (in leap years only), UTC"},
		{"0 0 29 1,2 *", "", "at 00:00, on 29 January and 29 February (29 February in leap years only), UTC"},
		{"0 0 1 */3 *", "", "at 00:00, on day 1 of the month, in every 3rd month from January to October, UTC"},
		{"* * * 2 *", "", "every minute, every day, in February, UTC"},
		{"0 0 13 * 5", "", "at 00:00, on day 13 of the month or on Friday (either is enough), UTC"},
		{"0 0 L * *", "", "at 00:00, on the last day of the month, UTC"},
		{"0 0 15,L-1,L-3 3 *", "", "at 00:00, on day 15, the day before the last day and the 3rd day before the last day of the month, in March, UTC"},
		{"0 9 L-5 * *", "", "at 09:00, on the 5th day before the last day of the month, UTC"},
		{"0 9 L-28 * *", "", "at 09:00, on the 28th day before the last day of the month (where the month has it), UTC"},
		{"0 9 L-29 1,3 *", "", "at 09:00, on the 29th day before the last day of the month, in January and March, UTC"},
		{"0 0 31W * *", "", "at 00:00, on the weekday nearest to day 31 of the month (where the month has it), UTC"},
		{"0 0 31W,30 * *", "", "at 00:00, on day 30 and the weekday nearest to day 31 of the month (where the month has them), UTC"},
		{"0 0 * * 5#5", "", "at 00:00, on the 5th Friday of the month (where the month has it), UTC"},
		{"0 0 * * 1#1,1L", "", "at 00:00, on the 1st Monday and the last Monday of the month, UTC"},
		{"0 0 * * 5L,1#5,1#4", "", "at 00:00, on the 4th Monday, the 5th Monday and the last Friday of the month (where the month has them), UTC"},
		{"0 0 15W,LW * *", "", "at 00:00, on the last weekday and the weekday nearest to day 15 of the month, UTC"},
		{"0 0 * * 5#2", "", "at 00:00, on the 2nd Friday of the month, UTC"},
		{"0 0 * * MON,7L", "", "at 00:00, on Monday and the last Sunday of the month, UTC"},
		{"0 0 L * 5L", "", "at 00:00, on the last day of the month or on the last Friday of the month (either is enough), UTC"},
		{"0 0 * * *,5L", "", "at 00:00, every day, UTC"},
		{"@weekly", "Asia/Tokyo", "at 00:00, on Sunday, Asia/Tokyo time"},
		{"@daily", "", "at 00:00, every day, UTC"},
		{"@every 90s", "Asia/Tokyo", "every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z"},
		{"@every 1d", "", "every day, counted from 1970-01-01T00:00:00Z"},
		{"@every 250ms", "", "every 250 milliseconds, counted from 1970-01-01T00:00:00Z"},
		{"@every 49h0m1s", "", "every 2 days 1 hour 1 second, counted from 1970-01-01T00:00:00Z"},
		{"30 9 * * * except 2026-12-24..2027-01-02,2027-05-01", "Europe/Berlin",
			"at 09:30, every day, except on 2026-12-24 to 2027-01-02 and 2027-05-01, Europe/Berlin time"},
		{"@daily only 2026-01-01,2026-02-01,2026-03-01,2026-04-01,2026-05-01", "",
			"at 00:00, every day, only on 2026-01-01, 2026-02-01, 2026-03-01 and 2 more, UTC"},
		{"@every 90s from 2026-01-01T01:00:00+01:00 until 2026-12-31T23:59:59.999Z", "Asia/Tokyo",
			"every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z, from 2026-01-01T00:00:00Z on, until 2026-12-31T23:59:59.999Z"},
		{"@every 7h except 2026-01-01", "Asia/Tokyo", "every 7 hours, counted from 1970-01-01T00:00:00Z, except on 2026-01-01, Asia/Tokyo time"},
		{"H H * * * except 2026-12-24", "", "at 04:38, every day, except on 2026-12-24, UTC (H taken from the job's name)"},
		{"H H * * *", "", "at 04:38, every day, UTC (H taken from the job's name)"},
		{"H/15 * * * *", "", "every 15 minutes, starting at 00:08, UTC (H taken from the job's name)"},
		{"H H H * H", "", "at 04:38, on day 23 of the month or on Thursday (either is enough), UTC (H taken from the job's name)"},
	} {
		if got := parseFor(t, "settle-orders", c.expr, c.zone).Words(); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expr, got, c.want)
		}
	}
}

// The words say "where the month has" if and only if some month lacks one of the days that are listed.
func TestWordsAboutMissingDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.SampledFrom([]int{3, 5}).Draw(t, "field")
		text, is := drawMonthDay(t, i)
		fields := []string{"0", "0", "*", "*", "*"}
		if fields[i-1] = text; i == 3 && rapid.Bool().Draw(t, "with a day") {
			fields[2] += ",28"
		}
		lacking := false
		for month := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC); month.Year() < 2029; month = month.AddDate(0, 1, 0) {
			found := false
			for day := month; day.Month() == month.Month(); day = day.AddDate(0, 0, 1) {
				found = found || is(day)
			}
			lacking = lacking || !found
		}
		expr := strings.Join(fields, " ")
		if words := parse(t, expr, "").Words(); strings.Contains(words, "where the month has") != lacking {
			t.Fatalf("%s: %s; some month lacks it: %t", expr, words, lacking)
		}
	})
}
