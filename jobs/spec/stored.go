package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Envelope is the part of a stored definition outside of the settings.
type Envelope struct {
	// Format is the version of the format.
	Format int
	// Generation is the label of the deployed cluster.
	Generation string
	// Version is the catalog's version of a stored job; 0 for a job of a program.
	Version int64
}

// storedNames is a list of names in a stored definition. One name is a text, which every version
// can read. Several names, or a name with a setting that goes with the names, are a list: an older
// version refuses the definition, and never takes the job for a follower of successes.
type storedNames struct {
	names  []string
	listed bool
}

// IsZero reports whether there are none, which JSON leaves out.
func (n storedNames) IsZero() bool { return len(n.names) == 0 }

// MarshalJSON returns a text, or a list of texts.
func (n storedNames) MarshalJSON() ([]byte, error) {
	if n.listed {
		return json.Marshal(n.names)
	}
	return json.Marshal(n.names[0])
}

// UnmarshalJSON accepts a text and a list of texts.
func (n *storedNames) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) != nil {
		return json.Unmarshal(text, &n.names)
	}
	if one != "" {
		n.names = []string{one}
	}
	return nil
}

// storedType is the struct whose JSON is a stored definition: the format, a field for each row, the
// generation and the version.
func storedType(rows []row) reflect.Type {
	field := func(name string, t reflect.Type, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: t, Tag: reflect.StructTag(`json:"` + tag + `"`)}
	}
	fields := []reflect.StructField{field("Format", reflect.TypeFor[int](), "v")}
	for i, r := range rows {
		t, tag := r.goType, r.StoredKey()+",omitempty"
		switch {
		case r.Kind == Duration || r.Kind == Instant:
			t = reflect.TypeFor[int64]()
		case r.Kind == JSON:
			t = reflect.TypeFor[json.RawMessage]()
		case r.Kind == Names:
			t, tag = reflect.TypeFor[storedNames](), r.StoredKey()+",omitzero"
		}
		if r.always {
			tag = r.StoredKey()
		}
		fields = append(fields, field(fmt.Sprint("F", i), t, tag))
	}
	return reflect.StructOf(append(fields,
		field("Generation", reflect.TypeFor[string](), "generation,omitempty"), field("Version", reflect.TypeFor[int64](), "stored,omitempty")))
}

// Store returns the stored definition of a job: canonical JSON. Equal settings have equal texts, in
// every version that has the settings.
func (b *Binding[T]) Store(job *T, e Envelope) ([]byte, error) {
	v, out := reflect.ValueOf(job).Elem(), reflect.New(b.stored).Elem()
	out.Field(0).SetInt(int64(e.Format))
	for i := range b.rows {
		r := &b.rows[i]
		if f := r.in(v); given(f) {
			b.store(r, v, f, out.Field(i+1))
		}
	}
	n := len(b.rows)
	out.Field(n + 1).SetString(e.Generation)
	out.Field(n + 2).SetInt(e.Version)
	return json.Marshal(out.Addr().Interface())
}

func (b *Binding[T]) store(r *row, v, f, out reflect.Value) {
	switch r.Kind {
	case Duration:
		out.SetInt(time.Duration(f.Int()).Milliseconds())
	case Instant:
		out.SetInt(f.Interface().(time.Time).UnixMilli())
	case Names:
		names := f.Interface().([]string)
		out.Set(reflect.ValueOf(storedNames{names, len(names) > 1 || b.refined(r, v)}))
	case Count:
		if fmt.Sprint(f.Int()) != r.unstored {
			out.Set(f)
		}
	case JSON:
		out.SetBytes(f.Bytes())
	default:
		out.Set(f)
	}
}

// refined reports whether a setting that goes with r has a value.
func (b *Binding[T]) refined(r *row, v reflect.Value) bool {
	return slices.ContainsFunc(b.rows, func(other row) bool { return other.with == r && given(other.in(v)) })
}

// ReadStored sets the settings of job from a stored definition. An unknown key, and a number that
// no setting can have, are errors that name the key.
func (b *Binding[T]) ReadStored(text []byte, job *T) (Envelope, error) {
	in := reflect.New(b.stored)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(in.Interface()); err != nil {
		return Envelope{}, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Envelope{}, errors.New("text follows the JSON object; store one object")
	}
	in = in.Elem()
	v, n := reflect.ValueOf(job).Elem(), len(b.rows)
	for i := range b.rows {
		r := &b.rows[i]
		if err := r.readStored(in.Field(i+1), r.in(v)); err != nil {
			return Envelope{}, fmt.Errorf("%s %w", r.StoredKey(), err)
		}
	}
	return Envelope{int(in.Field(0).Int()), in.Field(n + 1).String(), in.Field(n + 2).Int()}, nil
}

// maxStored bounds stored milliseconds to what a time.Duration can hold.
const maxStored = int64(math.MaxInt64) / int64(time.Millisecond)

func (r *row) readStored(in, f reflect.Value) error {
	if in.IsZero() {
		return nil
	}
	switch r.Kind {
	case Duration, Instant, Count:
		n := in.Int()
		//guard:stored-number P8 a stored number that is no duration is refused, and not taken for another one
		if n < 0 || n > maxStored {
			return fmt.Errorf("%d is outside 0 to %d", n, maxStored)
		}
		switch r.Kind {
		case Duration:
			f.SetInt(n * int64(time.Millisecond))
		case Instant:
			f.Set(reflect.ValueOf(time.UnixMilli(n).UTC()))
		default:
			f.SetInt(n)
		}
	case Names:
		f.Set(reflect.ValueOf(in.Interface().(storedNames).names))
	case JSON:
		f.SetBytes(in.Bytes())
	default:
		f.Set(in)
	}
	return nil
}
