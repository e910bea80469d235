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

func TestEnumRefusesOtherWords(t *testing.T) {
	for _, e := range enumWords {
		kind := reflect.TypeOf(e.values[0])
		for _, word := range []string{"", "Skip", "skip ", "overlap(0)", "RUNNING", "nothing"} {
			into := reflect.New(kind)
			err := into.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(word))
			if err == nil {
				t.Errorf("%v accepts %q", kind, word)
			} else if !strings.Contains(err.Error(), strings.Fields(e.words)[0]) {
				t.Errorf("%v: error %q does not name the words there are", kind, err)
			}
		}
	}
}

func TestEnumValuesWithoutAWord(t *testing.T) {
	for _, v := range []textEnum{jobs.Overlap(4), jobs.CatchUp(3), jobs.OnCrash(2), jobs.Placement(2),
		jobs.Outcome(0), jobs.Outcome(12), jobs.Trigger(255)} {
		if text, err := v.MarshalText(); err == nil {
			t.Errorf("%T: writes %q for a value without a word", v, text)
		}
		if !strings.Contains(v.String(), "(") {
			t.Errorf("%T: String gives %q, which looks like a word", v, v)
		}
	}
}

func TestOutcomeKinds(t *testing.T) {
	final := "succeeded failed timed_out cancelled lost abandoned skipped missed paused superseded"
	ran := "running succeeded failed timed_out cancelled lost abandoned"
	var gotFinal, gotRan []string
	for o := range jobs.Outcome(20) {
		if o.Final() {
			gotFinal = append(gotFinal, o.String())
		}
		if o.Ran() {
			gotRan = append(gotRan, o.String())
		}
	}
	if got := strings.Join(gotFinal, " "); got != final {
		t.Errorf("final: %s", got)
	}
	if got := strings.Join(gotRan, " "); got != ran {
		t.Errorf("ran: %s", got)
	}
}
