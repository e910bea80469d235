package spec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// Encode returns a job as a document in JSON. Settings without a value are left out, or with all shown as 0, "", [], {} or null.
func (b *Binding[T]) Encode(job *T, all bool) ([]byte, error) {
	v := reflect.ValueOf(job).Elem()
	var out object
	for i := 0; i < len(b.rows); i++ {
		r := &b.rows[i]
		section := r.Section()
		if section == "" {
			if err := out.setting(r, v, r.Name, all); err != nil {
				return nil, err
			}
			continue
		}
		inner, some := object{}, false
		for ; i < len(b.rows) && b.rows[i].Section() == section; i++ {
			some = some || given(b.rows[i].in(v))
			if err := inner.setting(&b.rows[i], v, b.rows[i].Key(), all); err != nil {
				return nil, err
			}
		}
		i--
		switch {
		case some:
			out.add(section, inner.bytes())
		case all:
			out.add(section, []byte("null"))
		}
	}
	return out.bytes(), nil
}

// setting adds the value of a setting as documents have it.
func (o *object) setting(r *row, v reflect.Value, key string, all bool) error {
	f := r.in(v)
	if !given(f) && !all {
		return nil
	}
	text, err := json.Marshal(r.value(f))
	if err == nil {
		o.add(key, text)
	}
	return err
}

// value is what encoding/json takes for the setting.
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
		if f.IsZero() {
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
