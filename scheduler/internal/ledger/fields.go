package ledger

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// fields reads the fields of a record in order and remembers the first error.
type fields struct {
	rest []string
	bad  error
}

// split takes a record of n fields apart. The mark in front is the record's version and kind.
func split(record, mark string, n int) (*fields, error) {
	rest, known := strings.CutPrefix(record, mark+"|")
	parts := strings.SplitN(rest, "|", n)
	if !known || len(parts) != n {
		return nil, fmt.Errorf("%w: %.40q", ErrUnknownFormat, record)
	}
	return &fields{rest: parts}, nil
}

func (f *fields) text() string {
	s := f.rest[0]
	f.rest = f.rest[1:]
	return s
}

func (f *fields) bytes() []byte { return []byte(f.text()) }

func (f *fields) flag() bool { return f.text() == "1" }

// wrong remembers an error.
func (f *fields) wrong(err error) {
	if f.bad == nil {
		f.bad = err
	}
}

// int reads a number; an absent one is 0.
func (f *fields) int() int64 {
	s := f.text()
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f.wrong(fmt.Errorf("%w: %q where a number belongs", ErrUnknownFormat, s))
	}
	return n
}

func (f *fields) small() int { return int(f.int()) }

func (f *fields) instant() time.Time { return time.UnixMilli(f.int()).UTC() }

// oneOf reads a word that has to be one of some.
func (f *fields) oneOf(known ...string) string {
	s := f.text()
	if !slices.Contains(known, s) {
		f.wrong(fmt.Errorf("%w: %q where one of %q belongs", ErrUnknownFormat, s, known))
	}
	return s
}

// param reads a shard's parameter, which is stored escaped.
func (f *fields) param() string {
	s, err := url.QueryUnescape(f.text())
	if err != nil {
		f.wrong(fmt.Errorf("%w: %w", ErrUnknownFormat, err))
	}
	return s
}

func (f *fields) outcome() (o jobs.Outcome) {
	if err := o.UnmarshalText([]byte(f.text())); err != nil {
		f.wrong(fmt.Errorf("%w: %w", ErrUnknownFormat, err))
	}
	return o
}

func (f *fields) window() Window { return WindowOf(f.text()) }

// attempts reads 'until,attempt'.
func (f *fields) attempts() (until int64, attempt int) {
	w := f.window()
	return w.From, int(w.To)
}

func (f *fields) counts() (counts map[jobs.Outcome]int64, retold, ran, won int64) {
	return countsOf(f.text())
}

// tally reads counts by outcome.
func (f *fields) tally() map[jobs.Outcome]int64 {
	counts, _, _, _ := countsOf(f.text())
	return counts
}

// going reads the runs of a backfill that have not ended, and skips malformed parts.
func (f *fields) going() (all []BackfillRun) {
	for part := range strings.SplitSeq(f.text(), ",") {
		if tick, run, ok := strings.Cut(part, "="); ok {
			all = append(all, BackfillRun{Number(tick), run})
		}
	}
	return all
}

// WindowOf reads 'from,to'. Any other text is the zero window.
func WindowOf(s string) Window {
	from, to, _ := strings.Cut(s, ",")
	return Window{Number(from), Number(to)}
}

// countsOf reads 'succeeded=12,missed=3', and among the counts the restored tick, the ticks that
// were granted, and when the last run succeeded whose row has left. Unknown words are left out.
func countsOf(s string) (counts map[jobs.Outcome]int64, retold, ran, won int64) {
	counts = make(map[jobs.Outcome]int64)
	for part := range strings.SplitSeq(s, ",") {
		word, n, _ := strings.Cut(part, "=")
		var o jobs.Outcome
		switch {
		case o.UnmarshalText([]byte(word)) == nil:
			counts[o] = Number(n)
		case word == "retold":
			retold = Number(n)
		case word == "ran":
			ran = Number(n)
		case word == "won":
			won = Number(n)
		}
	}
	return counts, retold, ran, won
}

// Spell is a number in digits.
func Spell(n int64) string { return strconv.FormatInt(n, 10) }

var separators = strings.NewReplacer("|", "/", "\n", " ")

// Plain keeps a short text out of the way of the records' separator.
func Plain(s string) string { return separators.Replace(s) }

// Brief shortens a text to fit into a field of a record.
func Brief(s string, most int) string {
	s = Plain(s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}

// SpellOrNone spells an instant that may be absent.
func SpellOrNone(n int64) string {
	if n == 0 {
		return ""
	}
	return Spell(n)
}

// SpellFlag spells a flag.
func SpellFlag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// Spelt caches how a number is spelt, for lists that repeat it.
type Spelt struct {
	n    int64
	text string
}

// Of is how a number is spelt.
func (s *Spelt) Of(n int64) string {
	if s.text == "" || n != s.n {
		s.n, s.text = n, Spell(n)
	}
	return s.text
}

// authorMax and MaxReason bound the stored author and reason of an operator's action, in bytes.
const (
	MaxAuthor = 64
	MaxReason = 256
)
