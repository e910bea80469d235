package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Typed returns a job's function that decodes the run's payload, in JSON, into a T and calls f. A
// run without a payload, as each run by the schedule, has the zero T.
//
// A payload that does not fit T, or has an unknown field, ends the run as failed before f is
// called, without another try: the error is a [Permanent] *[FieldError] with the field.
func Typed[T any](f func(ctx context.Context, run *Run, payload T) error) Func {
	if f == nil {
		return nil // which Validate refuses
	}
	return func(ctx context.Context, run *Run) error {
		var payload T
		if err := decodePayload(run.info.Payload, &payload); err != nil {
			return Permanent(err)
		}
		return f(ctx, run, payload)
	}
}

// decodePayload decodes one JSON value. Its error is a *FieldError.
func decodePayload(text []byte, to any) error {
	if len(text) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return payloadError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FieldError{Field: "payload", Msg: "has text after its end; send one JSON value"}
	}
	return nil
}

// payloadError names the field that an error of encoding/json is about.
func payloadError(err error) error {
	field, msg := "payload", strings.TrimPrefix(err.Error(), "json: ")
	var kind *json.UnmarshalTypeError
	switch name, unknown := strings.CutPrefix(msg, "unknown field "); {
	case unknown:
		if plain, bad := strconv.Unquote(name); bad == nil {
			name = plain
		}
		field, msg = field+"."+name, "is not a field of it; leave it out, or correct its name"
	case errors.As(err, &kind):
		if kind.Field != "" {
			field += "." + kind.Field
		}
		msg = fmt.Sprintf("is a JSON %s; %s", kind.Value, wanted(kind.Type))
		if kind.Type == reflect.TypeFor[time.Time]() {
			msg = "is no instant with its offset; write a text such as 2026-01-02T00:00:00Z"
		}
	default:
		msg = "cannot be read: " + msg
	}
	return &FieldError{Field: field, Msg: msg}
}

// wanted describes the JSON that encoding/json decodes into a type.
func wanted(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return "its type is " + t.String()
	}
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); t.Field(i).IsExported() && name != "-" {
			names = append(names, cmp.Or(name, t.Field(i).Name))
		}
	}
	return "write an object with the fields " + clip(strings.Join(names, ", "))
}
