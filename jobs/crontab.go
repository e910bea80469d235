package jobs

import (
	"strings"
	"time"
)

// crontabYears is how many years the calendar takes to come back, but for the years that are divisible by 100.
const crontabYears = 28

// CrontabWords returns in words how crontab(5) of Vixie cron and cronie reads the same text, where that gives other days; "" where it
// does not, and for a text that crontab(5) does not have. There a day field that begins with a star is not restricted, with a step
// too.
func (s *Schedule) CrontabWords() string {
	fields := strings.Fields(s.text)
	if len(fields) != 5 || s.resolved != "" || s.cal.monthDays != (monthDays{}) || strings.Contains(s.text, "?") {
		return ""
	}
	theirs := s.cal
	theirs.eitherDay = fields[2][0] != '*' && fields[4][0] != '*'
	if theirs.eitherDay == s.cal.eitherDay || s.cal.sameDays(&theirs) {
		return ""
	}
	if theirs.eitherDay {
		return "in crontab(5) either day field is enough, because neither begins with a star; here both must match"
	}
	return "in crontab(5) both day fields must match, because one begins with a star; here either is enough"
}

// sameDays reports whether two calendars have the same days.
func (c *calendar) sameDays(other *calendar) bool {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	for day := first; day < first+366*crontabYears; day++ {
		if c.matchesDay(day) != other.matchesDay(day) {
			return false
		}
	}
	return true
}
