package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// ParseStoredView reads one StoredView from JSON. The error is a *jobs.FieldError: for a setting that is not known, and for a value of
// another kind than the setting's.
func ParseStoredView(text []byte) (v StoredView, err error) {
	if err = decodeView(text, &v); err == nil {
		return v, nil
	}
	var settings map[string]json.RawMessage
	if json.Unmarshal(text, &settings) != nil {
		return v, &jobs.FieldError{Field: "job", Msg: "is no JSON object; write {\"handler\": ...}"}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) { // to tell whose fault it is
		alone, _ := json.Marshal(map[string]json.RawMessage{key: settings[key]}) // it was read from JSON
		if bad := decodeView(alone, &StoredView{}); bad != nil {
			return v, settingFault(key, settings[key], bad)
		}
	}
	return v, &jobs.FieldError{Field: "job", Msg: strings.TrimPrefix(err.Error(), "json: ")}
}

func decodeView(text []byte, v *StoredView) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// settingFault says in a setting's words what encoding/json has against its value.
func settingFault(key string, value json.RawMessage, err error) error {
	var kind *json.UnmarshalTypeError
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if name, unknown := strings.CutPrefix(msg, "unknown field "); unknown {
		name = strings.Trim(name, `"`)
		t, path := reflect.TypeFor[StoredView](), ""
		if field, is := settingNamed(t, key); is { // then its parts are meant
			for t = field.Type; t.Kind() == reflect.Pointer; {
				t = t.Elem()
			}
			path = key + "."
		}
		return &jobs.FieldError{Field: path + name, Msg: "is no setting of a stored job" + meant(t, path, name)}
	}
	if !errors.As(err, &kind) {
		return &jobs.FieldError{Field: key, Msg: msg}
	}
	if kind.Field != "" {
		key = kind.Field
	}
	is, _, _ := strings.Cut(kind.Value, " ")
	return &jobs.FieldError{Field: key, Msg: fmt.Sprintf("is a JSON %s; write %s", is, wanted(key, kind.Type, value))}
}

// wanted says what a setting takes.
func wanted(key string, t reflect.Type, value json.RawMessage) string {
	var text string
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		if !strings.HasSuffix(key, "_ms") {
			return "a whole number"
		}
		_ = json.Unmarshal(value, &text) // else it is no duration either
		if d, err := time.ParseDuration(text); err == nil {
			return fmt.Sprintf("milliseconds: %d", d.Milliseconds())
		}
		return "a whole number of milliseconds"
	case reflect.Slice:
		return "a list of texts"
	case reflect.Map:
		return "an object of texts"
	case reflect.String:
		return "a text"
	default:
		return "an object"
	}
}

// settingNamed is the field of a struct that has a name in JSON.
func settingNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// meant says which setting of a struct a name may stand for, if one is near.
func meant(t reflect.Type, path, name string) string {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)), "ms")
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if oneTypo(plain(tag), plain(name)) {
			return "; did you mean " + path + tag
		}
	}
	return "; leave it out, or correct its name"
}

// oneTypo reports whether two words are the same but for a letter, or for two that have changed places.
func oneTypo(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
