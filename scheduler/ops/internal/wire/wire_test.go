package wire

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

type inner struct {
	Also []inner `json:"also,omitempty"`
	Name string  `json:"name"`
}

type view struct {
	inner
	At      time.Time              `json:"at"`
	Until   time.Time              `json:"until,omitempty"`
	Lag     time.Duration          `json:"lag_ms"`
	Token   int64                  `json:"token,string"`
	Outcome jobs.Outcome           `json:"outcome"`
	Counts  map[jobs.Outcome]int64 `json:"counts"`
	List    []time.Time            `json:"list"`
	Raw     json.RawMessage        `json:"raw,omitempty"`
	More    *inner                 `json:"more"`
	Yes     bool                   `json:"yes"`
	_       int
	Unseen  int
}

// Each form of a value is written, and read again.
func TestForms(t *testing.T) {
	at := time.Date(2026, 11, 28, 6, 0, 0, 7e6, time.UTC)
	for text, v := range map[string]view{
		`{"name":"","at":null,"lag_ms":0,"token":"","outcome":"","counts":{},"list":[],"more":null,"yes":false}`: {},
		`{"also":[{"name":"<b>"}],"name":"a","at":"2026-11-28T06:00:00.007Z","until":"2026-11-28T06:00:00.007Z","lag_ms":1500,"token":"9007199254740993","outcome":"failed",` +
			`"counts":{"lost":1,"succeeded":2},"list":["2026-11-28T06:00:00.007Z"],"raw":[1],"more":{"name":"x"},"yes":true}`: {
			inner: inner{Also: []inner{{Name: "<b>"}}, Name: "a"}, At: at, Until: at, Lag: 1500 * time.Millisecond, Token: 9007199254740993, Outcome: jobs.OutcomeFailed,
			Counts: map[jobs.Outcome]int64{jobs.OutcomeSucceeded: 2, jobs.OutcomeLost: 1}, List: []time.Time{at}, Raw: json.RawMessage("[1]"), More: &inner{Name: "x"}, Yes: true,
		},
	} {
		got, err := Encode(v)
		if err != nil || string(got) != text {
			t.Errorf("got  %s, %v\nwant %s", got, err, text)
		}
		var back view
		if err := Decode([]byte(text), &back); err != nil {
			t.Fatal(err)
		}
		if again, err := Encode(back); err != nil || string(again) != text || !back.At.Equal(v.At) || back.Lag != v.Lag {
			t.Errorf("read again: %s, %v", again, err)
		}
	}
}

// A newer version may have more members and words. What is no view at all is an error.
func TestDecodeOthers(t *testing.T) {
	var v view
	if err := Decode([]byte(`{"new":{"x":1},"outcome":"waiting","counts":{"waiting":1,"failed":2},"lag_ms":9223372036854775807}`), &v); err != nil ||
		v.Outcome != 0 || v.Counts[jobs.OutcomeFailed] != 2 || v.Lag < math.MaxInt64-time.Millisecond {
		t.Errorf("%+v, %v", v, err)
	}
	for text, word := range map[string]string{
		``: "not JSON", `[]`: "array", `"x"`: "string", `{"at":5}`: "at: number", `{"at":"now"}`: `"now" is no time`, `{"lag_ms":"1s"}`: "lag_ms", `{"token":5}`: "token", `{"token":"x"}`: "no number",
		`{"list":{}}`: "list: object", `{"counts":[]}`: "counts: array",
	} {
		if err := Decode([]byte(text), new(view)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v; want %s", text, err, word)
		}
	}
}

// An instant that RFC 3339 cannot write is the nearest one.
func TestTime(t *testing.T) {
	for want, at := range map[string]time.Time{"0000-01-01T00:00:00.000Z": time.UnixMilli(math.MinInt64 / 2), "9999-12-31T23:59:59.999Z": time.UnixMilli(math.MaxInt64 / 2)} {
		if got := Time(at); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The tags of a field say where it stands in a request.
func TestFields(t *testing.T) {
	type in struct {
		inner
		Run   string `path:"run" none:"-"`
		Limit int    `query:"limit" max:"9"`
		Key   string `json:"key,omitempty" header:"K"`
		Body  inner  `whole:"yes"`
		Other int
	}
	var got []string
	for _, f := range Fields(reflect.TypeFor[in]()) {
		got = append(got, f.Source+" "+f.Name)
	}
	if want := "json also|json name|path run|query limit|json key|json Body"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}
