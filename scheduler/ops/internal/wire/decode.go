package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Decode reads what Encode wrote. Members that are not known are left out: a newer version may have more.
func Decode(text []byte, into any) error {
	if !json.Valid(text) {
		return errors.New("is not JSON")
	}
	return decode(text, reflect.ValueOf(into).Elem(), false)
}

func decode(text []byte, v reflect.Value, token bool) error {
	if text = bytes.TrimSpace(text); string(text) == "null" {
		v.SetZero()
		return nil
	}
	switch t := v.Type(); {
	case t == timeType:
		return decodeTime(text, v)
	case t == durationType:
		return decodeDuration(text, v)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(text)
	case token:
		return decodeToken(text, v)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		var word string
		err := unmarshal(text, &word)
		if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(word)) != nil {
			v.SetZero() // no word, or one of a newer version
		}
		return err
	}
	switch v.Kind() { //nolint:exhaustive // plain kinds are read as encoding/json reads them
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(text, v.Elem(), false)
	case reflect.Struct:
		return decodeStruct(text, v)
	case reflect.Slice:
		var items []json.RawMessage
		if err := unmarshal(text, &items); err != nil {
			return err
		}
		return decodeItems(items, v)
	case reflect.Map:
		return decodeMap(text, v)
	}
	return unmarshal(text, v.Addr().Interface())
}

// decodeItems reads a list. Items with a form of their own that this version cannot read are left out, and named in an error that wraps
// ledger.ErrUnknownFormat.
func decodeItems(items []json.RawMessage, v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), 0, len(items)))
	own := reflect.PointerTo(v.Type().Elem()).Implements(reflect.TypeFor[json.Unmarshaler]())
	var unread []error
	for i, text := range items {
		item := reflect.New(v.Type().Elem()).Elem()
		err := decode(text, item, false)
		if err != nil && !own {
			return err
		}
		if err != nil {
			unread = append(unread, fmt.Errorf("%w: item %d: %w", ledger.ErrUnknownFormat, i+1, err))
			continue
		}
		v.Set(reflect.Append(v, item))
	}
	return errors.Join(unread...)
}

func decodeStruct(text []byte, v reflect.Value) error {
	var members map[string]json.RawMessage
	if err := unmarshal(text, &members); err != nil {
		return err
	}
	for _, f := range Fields(v.Type()) {
		member, there := members[f.Name]
		if f.Source != Body || !there {
			continue
		}
		if err := f.Decode(member, v); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads a member into the field of a struct.
func (f *Field) Decode(member []byte, v reflect.Value) error {
	if err := decode(member, v.FieldByIndex(f.Index), f.text); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

func decodeMap(text []byte, v reflect.Value) error {
	var members map[string]json.RawMessage
	if err := unmarshal(text, &members); err != nil {
		return err
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
	for name, member := range members {
		key, value := reflect.New(v.Type().Key()), reflect.New(v.Type().Elem())
		if own, is := key.Interface().(encoding.TextUnmarshaler); is {
			if err := own.UnmarshalText([]byte(name)); err != nil {
				continue // of a newer version
			}
		} else {
			key.Elem().SetString(name)
		}
		if err := decode(member, value.Elem(), false); err != nil {
			return err
		}
		v.SetMapIndex(key.Elem(), value.Elem())
	}
	return nil
}

func decodeTime(text []byte, v reflect.Value) error {
	var s string
	if err := unmarshal(text, &s); err != nil {
		return err
	}
	at, err := ParseTime(s)
	v.Set(reflect.ValueOf(at))
	return err
}

// ParseTime reads any text of RFC 3339.
func ParseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, fmt.Errorf("%q is no time such as 2026-12-01T06:00:00Z", text)
	}
	return at.UTC(), nil
}

func decodeDuration(text []byte, v reflect.Value) error {
	var ms int64
	if err := unmarshal(text, &ms); err != nil {
		return err
	}
	const most = int64(math.MaxInt64 / time.Millisecond)
	v.SetInt(max(-most, min(ms, most)) * int64(time.Millisecond))
	return nil
}

func decodeToken(text []byte, v reflect.Value) error {
	var s string
	if err := unmarshal(text, &s); err != nil {
		return err
	}
	if s == "" {
		v.SetInt(0)
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", s)
	}
	v.SetInt(n)
	return nil
}

// Faults are the faults of settings that an error joins or wraps; none for another error.
func Faults(err error) (found []*jobs.FieldError) {
	var joined interface{ Unwrap() []error }
	if f := new(jobs.FieldError); errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			found = append(found, Faults(e)...)
		}
	} else if errors.As(err, &f) {
		found = append(found, f)
	}
	return found
}

// unmarshal reads a value without fields of ours. The error names the type of JSON that was found.
func unmarshal(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return fmt.Errorf("%s is not wanted here", wrong.Value)
	}
	return err
}
