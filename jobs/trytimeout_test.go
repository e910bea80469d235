package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestTryTimeoutRefuses(t *testing.T) {
	for _, c := range []struct {
		timeout time.Duration
		retry   jobs.Retry
		want    string // "" for a good job
	}{
		{time.Minute, jobs.Retry{Max: 1, Timeout: time.Minute - time.Millisecond}, ""},
		{0, jobs.Retry{Max: 1, Timeout: time.Hour}, ""},
		{time.Minute, jobs.Retry{Max: 1, Timeout: time.Minute}, "1m is not below timeout, 1m, which covers all tries"},
		{time.Minute, jobs.Retry{Timeout: time.Second}, "1s is only used with retry.max above 0; set that or leave this out"},
		{0, jobs.Retry{Max: 1, Timeout: -time.Second}, "-1s is negative; use 0 or more"},
		{0, jobs.Retry{Max: 1, Timeout: time.Microsecond}, "1µs is not a whole number of milliseconds"},
	} {
		err := jobs.Job{Name: "a", Schedule: "@daily", Func: nothing, Timeout: c.timeout, Retry: c.retry}.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || fmt.Sprint(faultsOf(t, err)) != "[retry.try_timeout]" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, %+v: %v, want %q", c.timeout, c.retry, err, c.want)
		}
	}
}
