package jobs

import (
	"context"
	"errors"
	"testing"
	"time"
)

type tenant struct {
	ID    int               `json:"id"`
	Name  string            `json:"name,omitempty"`
	Share float64           `json:"share"`
	Since time.Time         `json:"since"`
	Tags  []string          `json:"tags"`
	Notes map[string]bool   `json:"notes"`
	Sub   *struct{ A int }  `json:"sub"`
	Up    []*tenant         `json:"up"`
	Any   any               `json:"any"`
	Raw   []byte            `json:"raw"`
	skip  func()            //nolint:unused // which JSON leaves out
	Off   chan int          `json:"-"`
	Count int64             `json:"count,string"`
	Deep  map[string][]bool `json:"deep"`
}

// The declared shape of a handler's type refuses the same payloads as the type itself.
func TestPayloadShape(t *testing.T) {
	r := NewRegistry()
	if err := HandleTyped(r, "report", func(context.Context, *Run, tenant) error { return nil }); err != nil {
		t.Fatal(err)
	}
	shape := r.PayloadShape("report")
	for payload, field := range map[string]string{
		``: "",
		`{"id": 7, "name": "x", "share": 0.5, "since": "2026-01-01T00:00:00Z", "tags": ["a"], "notes": {"b": true}, "sub": {"A": 1},
			"up": [{"id": 1, "up": [{"up": null}]}], "any": [1, "x"], "raw": "AAAA", "count": "7", "deep": {"x": [true]}}`: "",
		`null`:                        "",
		`{"ID": 7}`:                   "",
		`{"idd": 7}`:                  "payload.idd",
		`{"id": "7"}`:                 "payload.id",
		`{"id": 7.5}`:                 "payload.id",
		`{"tags": [1]}`:               "payload.tags",
		`{"notes": {"b": 1}}`:         "payload.notes",
		`{"sub": {"B": 1}}`:           "payload.B",
		`{"up": [{"up": [{"x":1}]}]}`: "payload.x",
		`[1]`:                         "payload",
		`{"since": null}`:             "",
		`{"id": 7} {"id": 8}`:         "payload",
		`{`:                           "payload",
		`{"Off": 1}`:                  "payload.Off",
		`{"deep": {"x": [1]}}`:        "payload.deep",
	} {
		for how, err := range map[string]error{"shape": CheckPayload(shape, []byte(payload)), "type": decodePayload([]byte(payload), new(tenant))} {
			var f *FieldError
			switch {
			case field == "" && err != nil:
				t.Errorf("%s: %s: %v", how, payload, err)
			case field != "" && (!errors.As(err, &f) || f.Field != field):
				t.Errorf("%s: %s: %v, want a fault of %s", how, payload, err, field)
			}
		}
	}
}

// The error for a payload describes the wanted type, both from a Go type and from the shape that a
// node declares. A node of an older version, whose shapes have no times, is understood.
func TestPayloadShapeWords(t *testing.T) {
	type in struct {
		Since time.Time  `json:"since"`
		Until *time.Time `json:"until"`
		N     int        `json:"n"`
		Off   int        `json:"-"`
	}
	r := NewRegistry()
	if err := HandleTyped(r, "h", func(context.Context, *Run, in) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"since": "2026-01-02T03:04:05.5+01:00", "until": null}`: "",
		`{"since": "2026-01-02"}`:                                 "payload.since: is no instant with its offset; write a text such as 2026-01-02T00:00:00Z",
		`{"until": 7}`:                                            "payload.until: is no instant with its offset; write a text such as 2026-01-02T00:00:00Z",
		`[1]`:                                                     "payload: is a JSON array; write an object with the fields n, since, until",
		`"x"`:                                                     "payload: is a JSON string; write an object with the fields n, since, until",
		`{"n": {}}`:                                               "payload.n: is a JSON object; its type is int64",
	} {
		if err := CheckPayload(r.PayloadShape("h"), []byte(payload)); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", payload, err, want)
		}
		if err := decodePayload([]byte(payload), new(in)); (err == nil) != (want == "") {
			t.Errorf("%s: the type says %v", payload, err)
		}
	}
	if err := CheckPayload(`{"fields": {"n": "integer", "since": "any", "until": "any"}}`, []byte(`{"since": "2026-01-02"}`)); err != nil {
		t.Error(err)
	}
}

// A shape that cannot be derived from a type, or not read, refuses nothing.
func TestPayloadShapeUnknown(t *testing.T) {
	for _, shape := range []string{"", "{", "7", `"other"`, `{"other": "string"}`, `{"fields": 7}`, `{"list": 7}`, `{"fields": {"": "string", "a\"b": "x"}}`} {
		if err := CheckPayload(shape, []byte(`{}`)); err != nil && shape != `{"list": 7}` {
			t.Errorf("%s: %v", shape, err)
		}
	}
	type base struct{ A int }
	r := NewRegistry()
	if err := HandleTyped(r, "embeds", func(context.Context, *Run, struct{ base }) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := CheckPayload(r.PayloadShape("embeds"), []byte(`{"A": 1}`)); err != nil {
		t.Error(err)
	}
	if err := HandleTyped(r, "embeds", func(context.Context, *Run, int) error { return nil }); err == nil {
		t.Error("a handler was added twice")
	}
}
