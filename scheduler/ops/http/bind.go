package opshttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// bind reads a request into the input of an operation, a pointer, by the tags of its fields. It
// refuses parameters and members that the input does not have; the input has the path and the
// readable rest then, for the audit.
func bind(r *http.Request, in any) error {
	v := reflect.ValueOf(in).Elem()
	fields := wire.Fields(v.Type())
	body := false
	for _, f := range fields {
		switch f.Source {
		case wire.Path:
			if text := r.PathValue(f.Name); text != f.Tag.Get("none") {
				v.FieldByIndex(f.Index).SetString(text)
			}
		case wire.Body:
			body = true
		}
	}
	if err := bindQuery(r.URL.Query(), fields, v); err != nil || !body {
		return err
	}
	if err := bindBody(r, fields, v, in); err != nil {
		return err
	}
	for _, f := range fields {
		if of := v.FieldByIndex(f.Index); f.Tag.Get(wire.Header) != "" && of.IsZero() {
			of.SetString(r.Header.Get(f.Tag.Get(wire.Header)))
		}
	}
	return nil
}

func bindQuery(q url.Values, fields []wire.Field, v reflect.Value) error {
	known := make(map[string]bool)
	var faults []string
	for _, f := range fields {
		if f.Source != wire.Query {
			continue
		}
		known[f.Name] = true
		if fault := parameter(q, f, v.FieldByIndex(f.Index)); fault != "" {
			faults = append(faults, fault)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if plain, is := strings.CutSuffix(name, "_ms"); is && known[plain] && !known[name] {
			faults = append(faults, fmt.Sprintf("there is no parameter %q here; a duration has its unit: write %s=%s", name, plain, spec.Milliseconds(q.Get(name))))
		} else if !known[name] {
			faults = append(faults, fmt.Sprintf("there is no parameter %q here", name))
		}
	}
	return badRequests("", faults)
}

// badRequests is the error of a request with these faults; nil without one.
func badRequests(where string, faults []string) error {
	if faults == nil {
		return nil
	}
	return badRequest{where + strings.Join(faults, "; ")}
}

// parameter reads one parameter of a query, and returns its fault, "" for none.
func parameter(q url.Values, f wire.Field, v reflect.Value) (fault string) {
	text, bad := q.Get(f.Name), ""
	switch of := v.Addr().Interface().(type) {
	case *string:
		*of = text
	case *[]string:
		*of = q[f.Name]
	case *bool:
		if *of = text == "true"; text != "" && text != "true" && text != "false" {
			bad = "true or false"
		}
	case *int:
		*of, bad = number(text, f)
	case *time.Time:
		if text == "" {
			break
		}
		at, err := wire.ParseTime(text)
		if *of = at; err != nil {
			bad = "a time such as 2026-12-01T06:00:00Z"
		}
	case *time.Duration:
		if strings.HasSuffix(f.Name, "_ms") {
			var ms int
			ms, bad = number(text, f)
			*of = time.Duration(ms) * time.Millisecond
			break
		}
		if text == "" {
			break
		}
		d, err := spec.ParseDuration(text)
		if *of = d; err != nil {
			return fmt.Sprintf("%s: %v", f.Name, err)
		}
	}
	if bad != "" {
		return fmt.Sprintf("%s is %q; it must be %s", f.Name, text, bad)
	}
	return ""
}

// number reads a whole number within the bounds of its field; bad names the wanted form.
func number(text string, f wire.Field) (n int, bad string) {
	least, most := f.Number("min"), f.Number("max")
	if text == "" {
		return f.Number("default"), ""
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Sprintf("a number from %d to %d", least, most)
	}
	return n, ""
}

// bindBody reads the body, a JSON object with known members only; an empty one is an object without
// any.
func bindBody(r *http.Request, fields []wire.Field, v reflect.Value, in any) error {
	if t := r.Header.Get("Content-Type"); r.ContentLength != 0 && t != "" {
		if media, _, err := mime.ParseMediaType(t); err != nil || media != "application/json" {
			return badMedia(t)
		}
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(r.Body); err != nil {
		return err
	}
	body := bytes.TrimSpace(text.Bytes())
	if len(body) == 0 {
		body = []byte("{}")
	}
	for _, f := range fields {
		if f.Whole() {
			return bindWhole(body, v.FieldByIndex(f.Index), in)
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return badRequest{"the body is no JSON object: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	var faults []string
	for _, f := range fields {
		member, there := members[f.Name]
		if f.Source != wire.Body || !there {
			continue
		}
		delete(members, f.Name)
		if err := f.Decode(member, v); err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		faults = append(faults, fmt.Sprintf("there is no member %q here", name))
	}
	return badRequests("the body: ", faults)
}

// bindWhole reads the whole body into one field. An input that takes the faults of its body gets
// them, and adds its own.
func bindWhole(body []byte, of reflect.Value, in any) error {
	if !json.Valid(body) {
		return badRequest{"the body is not JSON"}
	}
	err := of.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(body)
	if takes, is := in.(interface{ Unread(error) }); is && err != nil {
		takes.Unread(err)
		return nil
	}
	return err
}

// unbind is the request for an input: its path, query and body, by the tags of its fields.
func unbind(path string, in any) (at string, q url.Values, body any, err error) {
	v := reflect.ValueOf(in).Elem()
	q = url.Values{}
	members := make(map[string]json.RawMessage)
	for _, f := range wire.Fields(v.Type()) {
		of := v.FieldByIndex(f.Index)
		switch {
		case f.Source == wire.Path:
			name := of.String()
			if none := f.Tag.Get("none"); name == "" {
				name = none
			}
			path = strings.Replace(path, "{"+f.Name+"}", url.PathEscape(name), 1)
		case of.IsZero() && !f.Whole():
		case f.Source == wire.Query:
			texts(q, f.Name, of.Interface())
		case f.Whole():
			return path, q, of.Interface(), nil
		default:
			if members[f.Name], err = f.Encode(v); err != nil {
				return path, q, nil, err
			}
		}
	}
	return path, q, members, nil
}

// texts adds a parameter to a query.
func texts(q url.Values, name string, value any) {
	switch of := value.(type) {
	case []string:
		q[name] = of
	case time.Time:
		q.Set(name, of.UTC().Format(time.RFC3339Nano))
	case time.Duration:
		if strings.HasSuffix(name, "_ms") {
			q.Set(name, strconv.FormatInt(of.Milliseconds(), 10))
		} else {
			q.Set(name, spec.FormatDuration(of))
		}
	default:
		q.Set(name, fmt.Sprint(of))
	}
}
