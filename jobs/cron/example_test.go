package cron_test

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs/cron"
)

func ExampleParse() {
	s, err := cron.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	// On 29 March the clocks skip from 02:00 to 03:00; the tick is at the first instant after.
	tick := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for range 3 {
		tick = s.Next(tick)
		fmt.Println(tick.Format(time.RFC3339))
	}

	_, err = cron.Parse("0 0 30 2 *", "")
	fmt.Println(err)
	// Output:
	// 2026-03-28T01:30:00Z
	// 2026-03-29T01:00:00Z
	// 2026-03-30T00:30:00Z
	// schedule "0 0 30 2 *": never fires: there is no such day in the months given
}

// Every node agrees on the instants of @every, whenever it was started.
func ExampleSchedule_Next() {
	s, err := cron.Parse("@every 7m", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, started := range []int{5, 6, 7} {
		fmt.Println(s.Next(time.Date(2026, 3, 1, 12, started, 0, 0, time.UTC)).Format(time.TimeOnly))
	}
	// Output:
	// 12:07:00
	// 12:07:00
	// 12:14:00
}

func ExampleSchedule_Count() {
	s, err := cron.Parse("*/15 9-16 * * MON-FRI", "America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	n, last := s.Count(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(n, last.Format(time.RFC3339))
	// Output:
	// 704 2026-03-31T20:45:00Z
}

// H spreads jobs over the hour; the name decides, on every node and for ever.
func ExampleParseFor() {
	for _, name := range []string{"settle-orders", "report", "cleanup"} {
		s, err := cron.ParseFor(name, "H H(0-5) * * *", "Europe/Berlin")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Resolved())
	}
	// Output:
	// CRON_TZ=Europe/Berlin 38 4 * * *
	// CRON_TZ=Europe/Berlin 34 3 * * *
	// CRON_TZ=Europe/Berlin 44 5 * * *
}

func ExampleSchedule_Prev() {
	s, err := cron.Parse("0 9 * * MON-FRI", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	sunday := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(s.Prev(sunday).Format(time.RFC3339), s.Next(sunday).Format(time.RFC3339))
	// Output:
	// 2026-02-27T09:00:00Z 2026-03-02T09:00:00Z
}

func ExampleSchedule_Between() {
	s, err := cron.Parse("0 */6 * * *", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tick := range s.Between(day, day.AddDate(0, 0, 1), 3) {
		fmt.Println(tick.Format(time.RFC3339))
	}
	// Output:
	// 2026-03-01T00:00:00Z
	// 2026-03-01T06:00:00Z
	// 2026-03-01T12:00:00Z
}

func ExampleSchedule_Note() {
	s, err := cron.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, day := range []int{28, 29} {
		tick := s.Next(time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC))
		fmt.Printf("%s %q\n", tick.In(s.Zone()).Format(time.RFC3339), s.Note(tick))
	}
	// Output:
	// 2026-03-28T02:30:00+01:00 ""
	// 2026-03-29T03:00:00+02:00 "gap"
}

func ExampleSchedule_Words() {
	for _, expr := range []string{"*/5 9-16 * * MON-FRI", "0 0 13 * FRI", "15 3 1 */3 *", "@every 90s"} {
		s, err := cron.Parse(expr, "")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Words())
	}
	// Output:
	// every 5 minutes from 09:00 to 16:55, on Monday to Friday, UTC
	// at 00:00, on day 13 of the month or on Friday (either is enough), UTC
	// at 03:15, on day 1 of the month, in every 3rd month from January to October, UTC
	// every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z
}
