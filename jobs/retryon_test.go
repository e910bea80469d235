package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

func TestRetryOnRefuses(t *testing.T) {
	for _, c := range []struct {
		retry jobs.Retry
		want  string // "" for a good job
	}{
		{jobs.Retry{Max: 1, On: jobs.RetryOtherNode}, ""},
		{jobs.Retry{On: jobs.RetryOtherNode}, "other_node is only used with retry.max above 0; set that or leave this out"},
		{jobs.Retry{Max: 1, On: 7}, "value 7 is not known; use one of same_node, other_node"},
	} {
		err := jobs.Job{Name: "a", Schedule: "@daily", Func: nothing, Retry: c.retry}.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || fmt.Sprint(faultsOf(t, err)) != "[retry.on]" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.retry, err, c.want)
		}
	}
}
