package schedtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
)

// judgedSettings are the settings of a job that a plan may have, and what the verdict makes of each. Together with refusedSettings these
// are all: a test compares them with the fields of jobs.Job.
var judgedSettings = map[string]string{
	"Name":                 "names the job in all evidence",
	"Schedule":             "which ticks are due",
	"TimeZone":             "which ticks are due",
	"Except":               "which ticks are due",
	"Only":                 "which ticks are due",
	"StartAt":              "which ticks are due",
	"EndAt":                "which ticks are due",
	"Jitter":               "which ticks are due",
	"MaxRuns":              "how many ticks are granted",
	"Func":                 "called as it is, between two lines of the sink",
	"Overlap":              "what starts beside what, and which ticks are skipped",
	"CatchUp":              "which late ticks run, and which are recorded as missed",
	"CatchUpMax":           "how many late ticks run",
	"StartWithin":          "how late a tick may start, and which are recorded as missed",
	"OnCrash":              "whether another attempt follows",
	"RerunMax":             "how many attempts follow",
	"Timeout":              "when a run may end as timed out",
	"StallAfter":           "when a run may end as stalled",
	"OnStall":              "whether a run may end as stalled",
	"TTL":                  "how long the effects of a fault last",
	"Retry.Max":            "how many tries and attempts there are",
	"Retry.Backoff":        "nothing: a run that waits goes on",
	"Retry.MaxBackoff":     "nothing: a run that waits goes on",
	"Retry.Timeout":        "nothing: a try may end at any time",
	"Retry.On":             "whether further attempts follow a failure",
	"Shards":               "how many parts a tick has",
	"Params":               "nothing: the function gets them",
	"Placement":            "nothing: any node may be the first to claim",
	"Labels":               "which nodes may run the job, and whose faults excuse a late start",
	"After":                "which ticks are due, and when",
	"When":                 "which ends of the upstreams' tick make one due",
	"Expect.SuccessWithin": "nothing: nobody is notified",
}

// refusedSettings are those with which a plan is refused, and why.
var refusedSettings = map[string]string{
	"Handler":     "the jobs of a plan have functions of their own; give it a Func",
	"Payload":     "belongs to a Handler; let the Func have its input",
	"ManagedBy":   "belongs to a Handler; leave it out",
	"Limit.Group": "how long a run waits for a permit cannot be judged; leave the limit out",
	"Limit.Max":   "how long a run waits for a permit cannot be judged; leave the limit out",
	"Guard":       "a lock in another store cannot be judged; leave it out",
}

// refusedBy returns a line for each setting of a job that cannot be judged.
func refusedBy(j jobs.Job) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(refusedSettings)) {
		if !settingOf(reflect.ValueOf(j), name).IsZero() {
			lines = append(lines, fmt.Sprintf("%s: %s", name, refusedSettings[name]))
		}
	}
	return lines
}

// settingOf is the value of a setting, which may be a field of a field.
func settingOf(v reflect.Value, name string) reflect.Value {
	for part := range strings.SplitSeq(name, ".") {
		v = v.FieldByName(part)
	}
	return v
}
