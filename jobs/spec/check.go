package spec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Check reports each fault in the form and the bounds of single settings, and settings without
// their With setting, in the order of the table. Faults of several settings together are for the
// caller. next is called after the checks of each setting.
func (b *Binding[T]) Check(job *T, fault func(field, msg string), next func(Setting)) {
	v := reflect.ValueOf(job).Elem()
	scheduled := !given(b.of("after").in(v))
	for i := range b.rows {
		r := &b.rows[i]
		f := r.in(v)
		switch msg := r.fault(f); {
		case msg != "":
			fault(r.Name, msg)
		case !given(f):
			if r.With != "" && r.Default == "" && r.Min > 0 && r.needed(v) {
				fault(r.Name, fmt.Sprintf("0 is outside %s; %s needs it", r.Bounds(), r.With))
			}
		case r.Unscheduled && !scheduled:
			fault(r.Name, "is not used: a job with after has no schedule; leave it out")
		case !r.needed(v):
			fault(r.Name, fmt.Sprintf("%sis only used with %s; set that or leave this out", r.shown(f), b.condition(r)))
		}
		next(r.Setting)
	}
}

// condition is With in words.
func (b *Binding[T]) condition(r *row) string {
	if name, word := r.needs(); word == "" && b.of(name).Kind == Count {
		return name + " above 0"
	}
	return r.With
}

// shown is a value in front of a fault's text; "" for a value that is too long.
func (r *row) shown(f reflect.Value) string {
	switch r.Kind {
	case Word:
		text, _ := f.Interface().(encoding.TextMarshaler).MarshalText() // fault has found it known
		return string(text) + " "
	case Count:
		return fmt.Sprint(f.Int(), " ")
	case Duration:
		return FormatDuration(time.Duration(f.Int())) + " "
	default:
		return ""
	}
}

// fault returns the fault of a value by itself; "" for none.
func (r *row) fault(f reflect.Value) string {
	if !given(f) {
		if r.Required {
			return "is missing; " + NameForm
		}
		return ""
	}
	switch r.Kind {
	case Name:
		if !IsName(f.String()) {
			return fmt.Sprintf("%q is not a name; %s", Clip(f.String()), NameForm)
		}
	case Word:
		if f.Uint() >= uint64(len(r.Words)) {
			return fmt.Sprintf("value %d is not known; use one of %s", f.Uint(), list(r.Words))
		}
	case Count:
		if n := f.Int(); n < r.Min || r.Max > 0 && n > r.Max {
			return r.outside(f)
		}
	case Duration:
		if err := checkWhole(time.Duration(f.Int())); err != nil {
			return err.Error()
		}
		if n := f.Int(); n < r.Min || r.Max > 0 && n > r.Max {
			return r.outside(f)
		}
	case Instant:
		if f.Interface().(time.Time).Nanosecond()%int(time.Millisecond) != 0 {
			return "is not a whole number of milliseconds"
		}
	case JSON:
		switch {
		case int64(f.Len()) > r.Max:
			return fmt.Sprintf("%d bytes are more than %d; store it elsewhere and pass its address", f.Len(), r.Max)
		case !json.Valid(f.Bytes()):
			return "is no JSON"
		}
	case Labels, Names:
		if r.Max > 0 && int64(f.Len()) > r.Max {
			return fmt.Sprintf("%d are more than %d", f.Len(), r.Max)
		}
	default:
	}
	return ""
}

// outside is the fault of a number out of its bounds, with the default, which is often the intended
// value.
func (r *row) outside(f reflect.Value) string {
	msg := r.shown(f) + "is outside " + r.Bounds()
	if r.Max == 0 {
		msg = r.shown(f) + "is less than " + r.bound(r.Min)
	}
	if r.hint != "" {
		msg += "; " + r.hint
	}
	return msg + r.LeaveOut()
}
