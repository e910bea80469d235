package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// ReadStored sets a setting of job from a member of a stored definition. known: a setting has this key.
func (b *Binding[T]) ReadStored(job *T, key string, text json.RawMessage) (known bool, err error) {
	for _, r := range b.rows {
		if r.StoredKey() == key {
			if err := r.readStored(reflect.ValueOf(job).Elem().FieldByIndex(r.index), text); err != nil {
				return true, fmt.Errorf("%s %w", key, err)
			}
			return true, nil
		}
	}
	return false, nil
}

func (r row) readStored(f reflect.Value, text []byte) error {
	switch r.Kind {
	case Duration, Instant:
		var n int64
		if err := json.Unmarshal(text, &n); err != nil {
			return err
		}
		d, err := durationOf(n)
		switch {
		case err != nil:
			return err
		case r.Kind == Duration:
			f.SetInt(int64(d))
		case n != 0:
			f.Set(reflect.ValueOf(time.UnixMilli(n).UTC()))
		}
		return nil
	case Names:
		var one string
		if json.Unmarshal(text, &one) != nil {
			break
		}
		if one != "" {
			f.Set(reflect.ValueOf([]string{one}))
		}
		return nil
	case JSON:
		f.SetBytes(append([]byte(nil), text...))
		return nil
	case Count:
		if err := json.Unmarshal(text, f.Addr().Interface()); err != nil {
			return err
		}
		if f.Int() < 0 {
			return fmt.Errorf("%d is outside 0 to %d", f.Int(), r.Max)
		}
		return nil
	default:
	}
	return json.Unmarshal(text, f.Addr().Interface())
}
