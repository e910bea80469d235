package jobs_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/escapement/escapement/jobs"
	"github.com/robfig/cron/v3"
)

var (
	garbageSeed  = flag.Uint64("jobs.seed", 1, "seed of the expressions that are half garbage")
	garbageCount = flag.Int("jobs.exprs", 3000, "how many of them")
)

// grammar makes expressions, most of them almost right.
type grammar struct{ *rand.Rand }

func (g grammar) pick(from ...string) string { return from[g.IntN(len(from))] }

// either gives the second, with a chance of one in n.
func (g grammar) either(n int, often, seldom func() string) string {
	if g.IntN(n) == 0 {
		return seldom()
	}
	return often()
}

func (g grammar) expression() string {
	text := g.either(6, g.fields, func() string {
		return g.either(2, g.descriptor, g.every)
	})
	if g.IntN(4) == 0 {
		text = g.prefix() + text
	}
	if g.IntN(20) == 0 {
		text = g.prefix() + text // a second one
	}
	for g.IntN(4) == 0 {
		text = g.spoil(text)
	}
	return text
}

func (g grammar) fields() string {
	n := 5 + g.IntN(2)
	if g.IntN(15) == 0 {
		n = g.IntN(9)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = g.field(6 - n + i)
	}
	return strings.Join(out, g.pick(" ", " ", " ", "  ", "\t"))
}

func (g grammar) field(i int) string {
	parts := []string{g.element(i)}
	for g.IntN(5) == 0 {
		parts = append(parts, g.element(i))
	}
	return strings.Join(parts, g.pick(",", ",", ",", ",", ",", ",", ",", ",", ",", ",,", ", ", ";"))
}

func (g grammar) element(i int) string {
	step := ""
	if g.IntN(4) == 0 {
		step = "/" + g.number(i)
	}
	a, b := g.number(i), g.number(i)
	if len(a) > len(b) || len(a) == len(b) && a > b {
		a, b = b, a // mostly forwards
	}
	switch g.IntN(25) {
	case 0, 1, 2, 3, 11, 12, 13, 14:
		return "*" + step
	case 4:
		return g.pick("?", "L", "W", "#", "5L", "LW", "1#2", "**", "*-*") + step
	case 5, 6:
		return a + "-" + b + step
	case 7, 10:
		return "H" + step
	case 8:
		return "H(" + a + "-" + b + ")" + step
	case 9:
		return g.pick("H", "h", "HH", "H()", "H(H)", "H(H-H)", "5-H", "H-5", "*/H", "H*", "(H)", "H(1-", "H)", "H(-1-5)") + step
	default:
		return g.number(i)
	}
}

func (g grammar) number(i int) string {
	low, high := 0, 59
	if i >= 0 && i < 6 {
		low, high = lowest[i], highest[i]
	}
	often := func() string { return fmt.Sprint(low + g.IntN(high-low+1)) }
	return g.either(30, often, func() string {
		return g.pick("0", "-1", "+1", "60", "00", "007", "7", "32", "13", "24", "1.5", "1e3", "0x10", "9999", "99999",
			"9223372036854775807", "18446744073709551616", "99999999999999999999999999999", "٣", "½", "jan", "DEC", "mon", "Sun", "fun", "")
	})
}

func (g grammar) descriptor() string {
	return g.pick("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot", "@", "@@", "@Daily",
		"@daily @daily", "@hourly 5", "@H", "@every")
}

func (g grammar) every() string {
	return "@every" + g.pick(" ", " ", " ", " ", "  ", "\t", "") + g.either(3, func() string {
		return fmt.Sprintf("%d%s", 1+g.IntN(200), g.pick("s", "m", "h"))
	}, func() string {
		return g.pick("", "0", "0s", "-1s", "1ns", "99ms", "100ms", "100.5ms", "8760h", "8761h", "1d", "1h30m", "1h 30m", "H",
			"2562047h47m16.854775807s", "2562048h", "9999999999999999999h", "1e9s", ".5s", "5", "∞", "1µs")
	})
}

func (g grammar) prefix() string {
	return g.pick("CRON_TZ=", "TZ=", "CRON_TZ=", "TZ=", "CRON_TZ=", "TZ=", "CRON_TZ=", "TZ=", "tz=", "TZ =", "CRON_TZ=TZ=", "TZ=TZ=") +
		g.pick("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Apia", "Etc/GMT+5", "Africa/Cairo", "Asia/Gaza", "0", "", "Local", "local", "Europe",
			"../../etc/passwd", "/etc/passwd", "Mars/Olympus", "Ünïcode/Zone", "\x00", "Europe/Berlin\x00", strings.Repeat("A", 70), "H") +
		g.pick(" ", " ", " ", " ", "  ", "\t", "\n", "", "\v", "\u00a0")
}

// spoil damages a text at one place, as bytes: it need not stay UTF-8.
func (g grammar) spoil(text string) string {
	at := g.IntN(len(text) + 1)
	switch g.IntN(6) {
	case 0:
		return text[:at]
	case 1:
		return text[at:]
	case 2:
		return text[:at] + text
	case 3:
		return text[:at] + strings.Repeat(g.pick("\x00", "1,", "*", "9", "\xff", " ", "\u2028", "\x1b["), 1+g.IntN(60)) + text[at:]
	default:
		return text[:at] + g.pick("\n", "\r", "\x00", "\x1b[2J", "\xff", "é", "\u2028", "\u202e", "💥", ",", "-", "/", "=", "@", "TZ=", "H", " ", "%s", "'", "\"") + text[at:]
	}
}

// Whatever the text: it is accepted and then works, or refused in one short line. A text
// that hangs ends the test, with its name.
func TestHalfGarbage(t *testing.T) {
	g := grammar{rand.New(rand.NewPCG(*garbageSeed, 0))}
	var accepted, hashed int
	var slowest time.Duration
	for n := range *garbageCount {
		expr, zone, name := g.expression(), g.pick("", "", "", "", "", "UTC", "Europe/Berlin", "America/Sao_Paulo", "nowhere\n"), g.pick("a", "settle-orders", "b", "c", "x\n", "")
		replay := fmt.Sprintf("expression %d of -jobs.seed=%d: %q in %q for %q", n, *garbageSeed, expr, zone, name)
		watchdog := time.AfterFunc(20*time.Second, func() { panic("hangs: " + replay) })
		start := time.Now()
		s, err := jobs.ParseScheduleFor(name, expr, zone)
		if err != nil {
			if text := err.Error(); s != nil || text == "" || len(text) > 400 || strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsRune(text, '\u2028') {
				t.Errorf("%s\nis refused as %v with %d bytes: %q", replay, s, len(text), text)
			}
		} else {
			accepted++
			if s.Resolved() != s.String() {
				hashed++
			}
			if wrong := works(s, name); wrong != "" {
				t.Errorf("%s\n%s", replay, wrong)
			}
		}
		slowest = max(slowest, time.Since(start))
		watchdog.Stop()
	}
	t.Logf("seed %d: %d expressions, %d accepted, %d of them with H; the slowest took %v", *garbageSeed, *garbageCount, accepted, hashed, slowest)
	if n := *garbageCount; n >= 1000 && (accepted < n/8 || accepted > n*4/5 || hashed < n/50) {
		t.Error("that is not half garbage any more")
	}
}

// works tells what is wrong with an accepted schedule.
func works(s *jobs.Schedule, name string) string {
	again, err := jobs.ParseScheduleFor(name, s.String(), "")
	if err != nil || again.String() != s.String() || again.Resolved() != s.Resolved() || again.FixedTimes() != s.FixedTimes() {
		return fmt.Sprintf("%q reads back as %v, %v", s, again, err)
	}
	plain, err := jobs.ParseSchedule(s.Resolved(), "")
	if err != nil || strings.Contains(s.Resolved(), "H") && !strings.HasPrefix(s.Resolved(), "CRON_TZ=") {
		return fmt.Sprintf("%q, resolved: %v", s.Resolved(), err)
	}
	if w := s.Words(); w == "" || strings.ContainsFunc(w, unicode.IsControl) || strings.TrimSuffix(w, " (H taken from the job's name)") != plain.Words() {
		return fmt.Sprintf("its words are %q, resolved %q", w, plain.Words())
	}
	for _, sec := range []int64{1_774_746_000, -62_135_596_800, 253_402_300_799, 4_102_444_800} {
		at := time.Unix(sec, 0)
		next, prev := s.Next(at), s.Prev(at)
		if !next.IsZero() && (!next.After(at) || s.Prev(next).After(at)) || !prev.IsZero() && (!prev.Before(at) || !next.IsZero() && s.Next(prev).Before(at)) {
			return fmt.Sprintf("beside %v are %v and %v", at.UTC(), prev, next)
		}
		if other := again.Next(at); !other.Equal(next) {
			return fmt.Sprintf("after %v comes %v, read back %v", at.UTC(), next, other)
		}
		end := at.Add(36 * time.Hour)
		n, last := s.Count(at, end)
		if got := s.Between(at, end, 3); len(got) != min(n, 3) || n > 0 && n <= 3 && !got[n-1].Equal(last) {
			return fmt.Sprintf("from %v on there are %d up to %v, the first %v", at.UTC(), n, last, got)
		}
	}
	return ""
}

// The parser underneath panics on a zone with nothing behind it. Should a later version
// not, this test says that the guard may go.
func TestParserNeedsTheGuard(t *testing.T) {
	for _, expr := range []string{"TZ=0", "CRON_TZ=UTC", "TZ=", "TZ=Europe/Berlin\t@daily"} {
		panics := func() (yes bool) {
			defer func() { yes = recover() != nil }()
			_, _ = cron.ParseStandard(expr)
			return false
		}
		if !panics() {
			t.Errorf("cron.ParseStandard(%q) does not panic any more", expr)
		}
		s, err := jobs.ParseSchedule(expr, "") // the last of them is a good one
		if good := strings.HasSuffix(expr, "daily"); good != (err == nil) || good != (s != nil) {
			t.Errorf("ParseSchedule(%q) is %v, %v", expr, s, err)
		}
	}
}
