package print

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// Quote puts a user's text into a message.
func Quote(text string) string { return strconv.Quote(spec.Clip(text)) }

// Many is a number of things, with commas between the thousands.
func Many(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + thing
}

// Number is a number in a table; "" for 0.
func Number[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// Brief is a time left, to the tenth of a second.
func Brief(d time.Duration) string {
	return spec.FormatDuration(max(0, d).Round(100 * time.Millisecond))
}

// Stamp is an instant in a table; "" for none.
func Stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ops.FormatTime(at)
}

// Pairs writes names and values one below the other; names and values alternate. The further lines of a value stand below its first.
func Pairs(w io.Writer, cells ...string) error {
	tabs := newTabs(w)
	for i := 0; i+1 < len(cells); i += 2 {
		first, more, _ := strings.Cut(strings.TrimRight(cells[i+1], "\n"), "\n")
		fmt.Fprintf(tabs, "%s\t%s\n", Cell(cells[i]), Cell(first))
		for line := range strings.SplitSeq(more, "\n") {
			if more != "" {
				fmt.Fprintf(tabs, "\t%s\n", Harmless(line))
			}
		}
	}
	return tabs.Flush()
}

// Given leaves out the names whose value is empty: "no node -" reads as if there were none.
func Given(cells ...string) (some []string) {
	for i := 0; i+1 < len(cells); i += 2 {
		if cells[i+1] != "" {
			some = append(some, cells[i], cells[i+1])
		}
	}
	return some
}

// IsTerminal reports whether w is a character device, such as a terminal, or a writer that ends there.
func IsTerminal(w io.Writer) bool {
	if to, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = to.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// PlainPathError drops the file's name, which the fault has already, and the name of the system
// call.
func PlainPathError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
