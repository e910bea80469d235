package ops

import (
	"time"

	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// FormatTime formats an instant as JSON has it: RFC 3339 in UTC with milliseconds.
func FormatTime(t time.Time) string { return wire.Time(t) }

// Encode returns the JSON of a view, of a list of views, or of a Page, which is the list of its
// items: times in RFC 3339, UTC, with milliseconds, durations in milliseconds, tokens as strings, no
// list null. encoding/json writes other forms. A struct without any tag of JSON is refused.
func Encode(v any) ([]byte, error) {
	if p, is := v.(interface{ items() any }); is {
		v = p.items()
	}
	return wire.Encode(v)
}

// Decode reads the output of Encode. Unknown members are left out.
func Decode(text []byte, into any) error {
	if p, is := into.(Listing); is {
		into, _, _ = p.Part()
	}
	return wire.Decode(text, into)
}

// timeOf is an instant of the ledger, ms, in UTC; the zero time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
