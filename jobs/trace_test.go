package jobs_test

import (
	"testing"

	"github.com/escapement/escapement/jobs"
)

func TestTraceparent(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := "00-" + trace + "-" + parent + "-01"
	outer := jobs.WithTraceparent(t.Context(), good)
	if got := jobs.Traceparent(outer); got != good {
		t.Errorf("got %q, want %q", got, good)
	}
	for _, bad := range []string{
		"", good + "\n", " " + good, good + "-x", "00-" + trace + "-" + parent, "ff-" + trace + "-" + parent + "-01",
		"01-" + trace + "-" + parent + "-01", "00-4BF92F3577b34da6a3ce929d0e0e4736-" + parent + "-01",
		"00-00000000000000000000000000000000-" + parent + "-01", "00-" + trace + "-0000000000000000-01",
		"00-" + trace + "-" + parent + "-1\r\nX: y",
	} {
		if got := jobs.Traceparent(jobs.WithTraceparent(t.Context(), bad)); got != "" {
			t.Errorf("%q is carried", bad)
		}
		if got := jobs.Traceparent(jobs.WithTraceparent(outer, bad)); got != good {
			t.Errorf("%q replaces a good one by %q", bad, got)
		}
	}
}
