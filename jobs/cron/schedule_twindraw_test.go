package cron_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// drawField draws the text of field i and the set it stands for.
func drawField(t *rapid.T, i int, few bool) (text string, values valueSet, special []func(time.Time) bool, star bool) {
	lo, hi := lowest[i], highest[i]
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			values[v] = true
		}
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, "elements") {
		a := rapid.IntRange(lo, hi).Draw(t, "a")
		b := rapid.IntRange(a, hi).Draw(t, "b")
		step := rapid.IntRange(1, hi-lo+1).Draw(t, "step")
		kinds := 5
		if i == 3 || i == 5 {
			kinds = 9
		}
		kind := rapid.IntRange(0, kinds).Draw(t, "kind")
		if few {
			kind = 0
		}
		switch kind {
		case 6, 7, 8, 9:
			text, is := drawMonthDay(t, i)
			parts, special = append(parts, anyCase(t, text)), append(special, is)
		case 0:
			parts = append(parts, drawValue(t, i, a))
			add(a, a, 1)
		case 1:
			parts = append(parts, drawValue(t, i, a)+"-"+drawValue(t, i, b))
			add(a, b, 1)
		case 2:
			parts = append(parts, fmt.Sprintf("%s-%s/%d", drawValue(t, i, a), drawValue(t, i, b), step))
			add(a, b, step)
		case 3:
			parts = append(parts, fmt.Sprintf("%s/%d", drawValue(t, i, a), step))
			add(a, hi, step)
		case 4:
			parts = append(parts, fmt.Sprintf("*/%d", step))
			add(lo, hi, step)
			// A stepped star is a star for the clock fields; for the two day fields it
			// restricts, unless the step is 1.
			star = star || i < 3 || step == 1
		default:
			parts = append(parts, rapid.SampledFrom([]string{"*", "?"}).Draw(t, "star"))
			add(lo, hi, 1)
			star = true
		}
	}
	return strings.Join(parts, ","), values, special, star
}

// drawValue draws how a value of field i is written: as a number, or a name, whole or cut, in any case.
func drawValue(t *rapid.T, i, v int) string {
	name := ""
	switch i {
	case 4:
		name = time.Month(v).String()
	case 5:
		name = time.Weekday(v).String()
	}
	switch rapid.IntRange(0, 2).Draw(t, "written") {
	case 1:
		name = name[:min(3, len(name))]
	case 2:
		name = ""
	}
	if name == "" {
		return fmt.Sprint(v)
	}
	return anyCase(t, name)
}

func anyCase(t *rapid.T, text string) string {
	return rapid.SampledFrom([]string{text, strings.ToLower(text), strings.ToUpper(text)}).Draw(t, "case")
}

// zonesWithHistory are drawn with instants at which their clocks were set.
var zonesWithHistory = []struct{ name, near string }{
	{"UTC", "2026-02-28T12:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"America/New_York", "2031-11-02T06:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"}, // 44 minutes and 30 seconds
	{"America/St_Johns", "2006-10-29T02:31:00Z"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // a day left out
	{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"}, // a day twice
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},  // two hours
	{"Europe/Berlin", "2040-12-31T12:00:00Z"},     // Go misplaces the end of this year
	{"Australia/Sydney", "2041-01-01T00:00:00Z"},
	{"Europe/Dublin", "2027-01-01T00:00:00Z"}, // negative daylight saving
}

// changingZones are drawn with any change of their clocks.
var changingZones = []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Tehran", "Pacific/Apia",
	"Africa/Casablanca", "America/St_Johns", "Europe/Dublin", "Antarctica/Troll", "Asia/Gaza", "America/Santiago", "Pacific/Chatham", "America/Havana",
	"Asia/Beirut", "America/Asuncion", "Asia/Amman", "Atlantic/Azores", "America/Scoresbysund", "America/Godthab", "America/Juneau", "Europe/Lisbon"}

// drawPlace draws a zone and a second near which its clock was set.
func drawPlace(t *rapid.T) (zone *time.Location, near int64) {
	var name string
	var after time.Time
	if rapid.Bool().Draw(t, "any change") {
		name = rapid.SampledFrom(changingZones).Draw(t, "zone")
		after = time.Unix(rapid.Int64Range(0, 2_240_000_000).Draw(t, "after"), 0)
	} else {
		place := rapid.SampledFrom(zonesWithHistory).Draw(t, "zone")
		name, near = place.name, unix(t, place.near)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	if near == 0 {
		near = after.Unix()
		if _, end := after.In(zone).ZoneBounds(); !end.IsZero() {
			near = end.Unix()
		}
	}
	return zone, near
}

func unix(t *rapid.T, text string) int64 {
	at, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

// drawSchedule draws a schedule, its twin, a second near a change of clocks, and the step in seconds with which to walk.
func drawSchedule(t *rapid.T) (s *cron.Schedule, w *twin, near, step int64) {
	w = &twin{}
	w.zone, near = drawPlace(t)
	var fields []string
	for i := range 6 {
		// Seconds are mostly 0, days and months mostly free: else hardly a tick would fall into the walk.
		free := i == 0 || i >= 3
		switch {
		case i == 0 && rapid.IntRange(0, 5).Draw(t, "free") > 0:
			w.values[0][0] = true
			step = 60
			continue
		case free && i > 0 && rapid.IntRange(0, 2).Draw(t, "free") > 0:
			fields, w.star[i] = append(fields, "*"), true
			for v := lowest[i]; v <= highest[i]; v++ {
				w.values[i][v] = true
			}
			continue
		}
		text, values, special, star := drawField(t, i, i < 3 && rapid.Bool().Draw(t, "few"))
		fields, w.values[i], w.special[i], w.star[i] = append(fields, text), values, special, star
	}
	if w.interval = w.star[1] || w.star[2]; step == 0 || near%60 != 0 {
		step = 1
	}
	w.bounds = drawBounds(t, near)
	expr := strings.Join(fields, " ") + w.bounds.text()
	s, err := cron.Parse(expr, w.zone.String())
	if err != nil {
		if strings.Contains(err.Error(), "never fires") || strings.Contains(err.Error(), "no tick is left") || strings.Contains(err.Error(), "leave no day") {
			t.Skip("such as 31 February")
		}
		t.Fatalf("%s: %v", expr, err)
	}
	return s, w, near, step
}
