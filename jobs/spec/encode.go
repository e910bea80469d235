package spec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Encode returns a job as a document in JSON. Settings without a value are left out, or with all
// shown as 0, "", [], {} or null.
func (b *Binding[T]) Encode(job *T, all bool) ([]byte, error) {
	v := reflect.ValueOf(job).Elem()
	some := func(r *row) bool { return given(r.in(v)) }
	if !all {
		return b.encode(v, some, false)
	}
	return b.encode(v, func(r *row) bool {
		section := r.Section()
		return section == "" || slices.ContainsFunc(b.rows, func(other row) bool { return other.Section() == section && some(&other) })
	}, true)
}

// EncodeSome returns a document with some of the settings, also where they have the zero value, if
// documents have a form for that.
func (b *Binding[T]) EncodeSome(job *T, some func(Setting) bool) ([]byte, error) {
	v := reflect.ValueOf(job).Elem()
	return b.encode(v, func(r *row) bool { return some(r.Setting) && r.value(r.in(v)) != nil }, false)
}

// encode writes some of the settings. A section without any is left out, or with null written as
// null.
func (b *Binding[T]) encode(v reflect.Value, some func(*row) bool, null bool) ([]byte, error) {
	var out, inner object
	for i := range b.rows {
		r := &b.rows[i]
		section, into := r.Section(), &out
		if section != "" {
			into = &inner
		}
		if some(r) {
			text, err := json.Marshal(r.value(r.in(v)))
			if err != nil {
				return nil, err
			}
			into.add(r.Key(), text)
		}
		if section == "" || i+1 < len(b.rows) && b.rows[i+1].Section() == section {
			continue
		}
		switch {
		case inner.text.Len() > 0:
			out.add(section, inner.bytes())
		case null:
			out.add(section, []byte("null"))
		}
		inner = object{}
	}
	return out.bytes(), nil
}

// Show returns the value of a setting for messages: short, texts in quotes, and 0s, 0, "" or [] for
// none.
func (b *Binding[T]) Show(job *T, s Setting) string {
	r := b.of(s.Name)
	f := r.in(reflect.ValueOf(job).Elem())
	switch r.Kind {
	case Duration:
		return FormatDuration(time.Duration(f.Int()))
	case Instant, Text, Name, Word:
		text, _ := r.value(f).(string)
		if word, is := f.Interface().(encoding.TextMarshaler); is && r.Kind == Word {
			known, _ := word.MarshalText() // an unknown word is shown as none
			text = string(known)
		}
		return strconv.Quote(Clip(text))
	case JSON:
		return Clip(string(f.Bytes()))
	default:
		return Clip(fmt.Sprint(f.Interface()))
	}
}

// value is the setting's value for encoding/json.
func (r *row) value(f reflect.Value) any {
	switch r.Kind {
	case Word:
		return f.Interface().(encoding.TextMarshaler)
	case Duration:
		if f.IsZero() {
			return nil
		}
		return FormatDuration(time.Duration(f.Int()))
	case Instant:
		if !given(f) {
			return nil
		}
		return f.Interface().(time.Time).UTC().Format(instantForm)
	case Texts, Names:
		if f.IsNil() {
			return []string{}
		}
	case Labels:
		if f.IsNil() {
			return map[string]string{}
		}
	case JSON:
		if f.Len() == 0 {
			return nil
		}
		return json.RawMessage(f.Bytes())
	default:
	}
	return f.Interface()
}

// object is a JSON object whose keys keep their order.
type object struct{ text bytes.Buffer }

func (o *object) add(key string, value []byte) {
	o.text.WriteString(`,"` + key + `":`)
	o.text.Write(value)
}

func (o *object) bytes() []byte {
	if o.text.Len() == 0 {
		return []byte("{}")
	}
	return append(append([]byte{'{'}, o.text.Bytes()[1:]...), '}')
}
