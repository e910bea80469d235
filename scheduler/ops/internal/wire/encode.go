package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// The first and the last instant that RFC 3339 can write.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
)

// Time formats an instant as JSON has it. An instant outside of the years 0 to 9999, which a damaged
// record may have, becomes the nearest one inside.
func Time(t time.Time) string {
	switch t = t.UTC(); {
	case t.Before(firstTime):
		t = firstTime
	case t.After(lastTime):
		t = lastTime
	}
	return t.Format(spec.TimeLayout)
}

// OneLine makes a text fit for one line.
func OneLine(s string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	marshaler    = reflect.TypeFor[json.Marshaler]()
	textForm     = reflect.TypeFor[encoding.TextMarshaler]()
)

// Encode returns the JSON of a value, without a line end.
func Encode(v any) ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	var b bytes.Buffer
	err := encode(&b, reflect.ValueOf(v), false)
	return b.Bytes(), err
}

func encode(b *bytes.Buffer, v reflect.Value, text bool) error {
	switch t := v.Type(); {
	case t == timeType:
		at := v.Interface().(time.Time)
		if at.IsZero() {
			b.WriteString("null")
			return nil
		}
		return quote(b, Time(at))
	case t == durationType:
		b.WriteString(strconv.FormatInt(v.Int()/int64(time.Millisecond), 10))
		return nil
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil():
		b.WriteString("null")
		return nil
	case t.Implements(marshaler):
		own, err := v.Interface().(json.Marshaler).MarshalJSON()
		b.Write(own)
		return err
	case t.Implements(textForm):
		own, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil && !v.IsZero() { // no outcome yet is ""
			return err
		}
		return quote(b, string(own))
	case text:
		if v.IsZero() {
			return quote(b, "")
		}
		return quote(b, strconv.FormatInt(v.Int(), 10))
	}
	switch v.Kind() { //nolint:exhaustive // every other kind is written as encoding/json writes it
	case reflect.Pointer, reflect.Interface:
		return encode(b, v.Elem(), false)
	case reflect.Struct:
		return encodeStruct(b, v)
	case reflect.Map:
		return encodeMap(b, v)
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := encode(b, v.Index(i), false); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.String:
		return quote(b, v.String())
	case reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
		return nil
	case reflect.Int, reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
		return nil
	}
	other, err := json.Marshal(v.Interface())
	b.Write(other)
	return err
}

func encodeStruct(b *bytes.Buffer, v reflect.Value) error {
	fields := Fields(v.Type())
	if len(fields) == 0 && v.NumField() > 0 {
		return fmt.Errorf("encode %s: no field has a tag of JSON; encode the views in it", v.Type())
	}
	b.WriteByte('{')
	first := true
	for _, f := range fields {
		of := v.FieldByIndex(f.Index)
		if f.Source != Body || f.omit && empty(of) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if err := quote(b, f.Name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := encode(b, of, f.text); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func empty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// encodeMap writes a map with keys that are texts, in their order.
func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	byName := make(map[string]reflect.Value, v.Len())
	names := make([]string, 0, v.Len())
	for k, value := range v.Seq2() {
		name := k.String()
		if own, is := k.Interface().(encoding.TextMarshaler); is {
			text, err := own.MarshalText()
			if err != nil {
				return err
			}
			name = string(text)
		}
		byName[name], names = value, append(names, name)
	}
	slices.Sort(names)
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := quote(b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := encode(b, byName[name], false); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// quote writes a string. Characters of HTML stay: nothing here is put into a page.
func quote(b *bytes.Buffer, text string) error {
	plain := func(r rune) bool { return r >= ' ' && r < 0x7f && r != '"' && r != '\\' }
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 { // most are
		b.WriteByte('"')
		b.WriteString(text)
		b.WriteByte('"')
		return nil
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(text)
	b.Truncate(b.Len() - 1) // the line end
	return err
}

// Encode returns the JSON of the field of a struct.
func (f *Field) Encode(v reflect.Value) ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, v.FieldByIndex(f.Index), f.text)
	return b.Bytes(), err
}
