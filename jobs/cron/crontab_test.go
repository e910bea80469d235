package cron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// Where crontab(5) runs a schedule on other days, the words name the difference.
func TestCrontabWords(t *testing.T) {
	const both, either = "both day fields must match", "either day field is enough"
	for expr, want := range map[string]string{
		"0 0 */2 * 1": both, "0 0 1 * */2": both, "0 0 */2 * MON-FRI": both, "0 0 */2,1 * 1": both, "0 0 */2 1 0-6": both,
		"0 0 1,* * 1": either, "0 0 1 * 1,*": either,
		"0 0 1 * 1": "", "0 0 * * 1": "", "0 0 */2 * *": "", "0 0 1-31/2 * 1": "", "0 0 */1 * 1": "", "0 0 1 * *": "", "0 0 1-31 * 0-6": "",
		"0 0 ? * 1": "", "0 0 0 */2 * 1": "", "0 0 */2 * 5L": "", "@daily": "", "@every 2d": "", "H 0 */2 * 1": "",
	} {
		s, err := cron.ParseFor("a", expr, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CrontabWords(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// crontabMatches is the rule of Vixie cron's cron.c, slow and obvious: a field is a star by its first character.
func crontabMatches(dom, dow string, inDom, inDow bool) bool {
	if strings.HasPrefix(dom, "*") || strings.HasPrefix(dow, "*") {
		return inDom && inDow
	}
	return inDom || inDow
}

// CrontabWords speaks if and only if some day differs.
func TestCrontabWordsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dom, days, domSpecial, _ := drawField(t, 3, rapid.IntRange(0, 3).Draw(t, "few") == 0)
		dow, weekdays, dowSpecial, _ := drawField(t, 5, false)
		if len(domSpecial)+len(dowSpecial) > 0 || strings.Contains(dom+dow, "?") {
			t.Skip("not crontab(5)")
		}
		s, err := cron.Parse(fmt.Sprintf("0 0 %s * %s", dom, dow), "")
		if err != nil {
			t.Skip("never fires")
		}
		var ours, theirs []string
		for day := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2029; day = day.AddDate(0, 0, 1) {
			if crontabMatches(dom, dow, days[day.Day()], weekdays[day.Weekday()]) {
				theirs = append(theirs, day.Format(time.DateOnly))
			}
		}
		for _, tick := range s.Between(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), 20_000) {
			ours = append(ours, tick.Format(time.DateOnly))
		}
		if same, words := slices.Equal(ours, theirs), s.CrontabWords(); same != (words == "") {
			t.Fatalf("%s: the same days: %t, words %q", s, same, words)
		}
	})
}
