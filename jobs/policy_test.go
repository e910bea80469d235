package jobs_test

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

type textEnum interface {
	fmt.Stringer
	encoding.TextMarshaler
}

// The words are a public face: config files, JSON and the ledger hold them.
var enumWords = []struct {
	values []textEnum
	words  string
}{
	{[]textEnum{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapAllow}, "skip queue replace allow"},
	{[]textEnum{jobs.CatchUpLatest, jobs.CatchUpAll, jobs.CatchUpNone}, "latest all none"},
	{[]textEnum{jobs.OnCrashRecord, jobs.OnCrashRerun}, "record rerun"},
	{[]textEnum{jobs.RetrySameNode, jobs.RetryOtherNode}, "same_node other_node"},
	{[]textEnum{jobs.PlacementOwner, jobs.PlacementRace}, "owner race"},
	{[]textEnum{jobs.OutcomeRunning, jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut,
		jobs.OutcomeCancelled, jobs.OutcomeLost, jobs.OutcomeAbandoned, jobs.OutcomeSkipped, jobs.OutcomeMissed,
		jobs.OutcomePaused, jobs.OutcomeSuperseded},
		"running succeeded failed timed_out cancelled lost abandoned skipped missed paused superseded"},
	{[]textEnum{jobs.TriggerSchedule, jobs.TriggerCatchUp, jobs.TriggerManual, jobs.TriggerRerun, jobs.TriggerAfter},
		"schedule catch_up manual rerun after"},
}

func TestEnumWords(t *testing.T) {
	for _, e := range enumWords {
		words := strings.Fields(e.words)
		if len(words) != len(e.values) {
			t.Fatalf("%T: %d words for %d values", e.values[0], len(words), len(e.values))
		}
		for i, v := range e.values {
			text, err := v.MarshalText()
			if err != nil || string(text) != words[i] || v.String() != words[i] {
				t.Errorf("%T %d: text %q, string %q, error %v; want %q", v, i, text, v, err, words[i])
			}
			back := reflect.New(reflect.TypeOf(v))
			if err := back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text); err != nil {
				t.Errorf("%T: reading back %q: %v", v, text, err)
			}
			if got := back.Elem().Interface(); got != any(v) {
				t.Errorf("%T: %q reads back as %v", v, text, got)
			}
		}
	}
}

func TestEnumRefuses(t *testing.T) {
	for _, e := range enumWords {
		kind := reflect.TypeOf(e.values[0])
		into := reflect.New(kind)
		for _, word := range []string{"", "Skip", "skip ", "overlap(0)", "RUNNING"} {
			err := into.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(word))
			if err == nil || !strings.Contains(err.Error(), strings.Fields(e.words)[0]) {
				t.Errorf("%v, %q: error %v, want one that names the words there are", kind, word, err)
			}
		}
		into.Elem().SetUint(200)
		v := into.Elem().Interface().(textEnum)
		if text, err := v.MarshalText(); err == nil || !strings.Contains(v.String(), "(200)") {
			t.Errorf("%v: a value without a word is written as %q, %q", kind, text, v)
		}
	}
}

// A tick that was granted ends in an outcome that Ran.
func TestOutcomeRan(t *testing.T) {
	for o, want := range map[jobs.Outcome]bool{
		0: false, jobs.OutcomeRunning: true, jobs.OutcomeSucceeded: true, jobs.OutcomeCancelled: true,
		jobs.OutcomeAbandoned: true, jobs.OutcomeSkipped: false, jobs.OutcomeMissed: false, 200: false,
	} {
		if o.Ran() != want {
			t.Errorf("%v: ran %v, want %v", o, o.Ran(), want)
		}
	}
}

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
