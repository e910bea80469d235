package spec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Binding reads and writes the settings in the fields of a T.
type Binding[T any] struct {
	rows   []row
	stored reflect.Type // see storedType
	beside []string     // further keys of documents, for hints
}

// row is a setting and its field.
type row struct {
	Setting
	index  []int
	goType reflect.Type

	with      *row          // the row of With; nil without
	word      uint64        // the value that with must have; 0 for any but the zero value
	byDefault reflect.Value // of Default; invalid without
}

var kindTypes = [...]reflect.Type{
	Text: reflect.TypeFor[string](), Name: reflect.TypeFor[string](), Count: reflect.TypeFor[int](), Duration: reflect.TypeFor[time.Duration](),
	Instant: reflect.TypeFor[time.Time](), Texts: reflect.TypeFor[[]string](), Names: reflect.TypeFor[[]string](),
	Labels: reflect.TypeFor[map[string]string](), JSON: reflect.TypeFor[[]byte](),
}

// Bind returns the binding of a struct type. Bind panics when T lacks the field of a setting, or
// has one of another type.
func Bind[T any]() *Binding[T] {
	b := &Binding[T]{}
	for _, s := range table {
		t, index := reflect.TypeFor[T](), []int(nil)
		for part := range strings.SplitSeq(s.Field, ".") {
			f, has := t.FieldByName(part)
			if !has {
				panic(fmt.Sprintf("spec: %v has no field %s for the setting %s", reflect.TypeFor[T](), s.Field, s.Name))
			}
			t, index = f.Type, append(index, f.Index...)
		}
		word := s.Kind == Word && t.Kind() == reflect.Uint8
		if !word && (s.Kind == Word || t != kindTypes[s.Kind]) {
			panic(fmt.Sprintf("spec: field %s of %v is a %v, and the setting %s is %v", s.Field, reflect.TypeFor[T](), t, s.Name, s.Kind))
		}
		b.rows = append(b.rows, row{Setting: s, index: index, goType: t})
	}
	for i := range b.rows {
		b.resolve(&b.rows[i])
	}
	b.stored = storedType(b.rows)
	return b
}

// resolve finds the row of With, and the value of Default.
func (b *Binding[T]) resolve(r *row) {
	if name, word := r.needs(); name != "" {
		r.with = b.of(name)
		r.word = uint64(max(0, slices.Index(r.with.Words, word)))
	}
	if r.Default != "" {
		r.byDefault = reflect.New(r.goType).Elem()
		if err := r.set(r.byDefault, r.Default); err != nil {
			panic("spec: the default of " + r.Name + ": " + err.Error())
		}
	}
}

// Only returns a binding for documents with some of the settings and the keys beside, which Decode
// hands to other. A fault of an unknown key names these keys too.
func (b *Binding[T]) Only(some func(Setting) bool, beside ...string) *Binding[T] {
	only := &Binding[T]{beside: beside}
	for _, r := range b.rows {
		if some(r.Setting) {
			only.rows = append(only.rows, r)
		}
	}
	return only
}

// in returns the field of the row's setting.
func (r *row) in(v reflect.Value) reflect.Value { return v.FieldByIndex(r.index) }

func (b *Binding[T]) of(name string) *row {
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.Name == name })
	return &b.rows[i] // the callers have the name from the table
}

// given reports whether a setting has a value. An empty list or mapping is none, and neither is the
// zero time of any zone.
func given(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return !v.Interface().(time.Time).IsZero()
	default:
		return !v.IsZero()
	}
}

// Given reports whether a setting of job differs from the zero value.
func (b *Binding[T]) Given(job *T, s Setting) bool {
	return given(b.of(s.Name).in(reflect.ValueOf(job).Elem()))
}

// needed reports whether the setting that r goes with is there; true for a setting that goes with
// none.
func (r *row) needed(v reflect.Value) bool {
	switch {
	case r.with == nil:
		return true
	case r.word == 0:
		return given(r.with.in(v))
	default:
		return r.with.in(v).Uint() == r.word
	}
}

// Fill gives the settings of job that have no value their defaults, where the setting that they go
// with is there.
func (b *Binding[T]) Fill(job *T) {
	v := reflect.ValueOf(job).Elem()
	for i := range b.rows {
		r := &b.rows[i]
		if r.Default == "" {
			continue
		}
		if f := r.in(v); !given(f) && r.needed(v) {
			f.Set(r.byDefault)
		}
	}
}

// Idle resets each setting that has its default value while its With setting does not use it: a
// document that shows every setting equals one without defaults. Another value has a purpose, and
// stays: Check refuses it.
func (b *Binding[T]) Idle(job *T) {
	v := reflect.ValueOf(job).Elem()
	for i := range b.rows {
		if r := &b.rows[i]; r.with != nil && r.Default != "" && !r.needed(v) && r.equal(r.in(v), r.byDefault) {
			r.in(v).SetZero()
		}
	}
}

// Set sets a setting of a single value from text: a flag or a scalar of a document. The error is
// the fault without the setting's name.
func (b *Binding[T]) Set(job *T, s Setting, text string) error {
	return b.of(s.Name).set(reflect.ValueOf(job).Elem().FieldByIndex(b.of(s.Name).index), text)
}

func (r *row) set(f reflect.Value, text string) error {
	switch r.Kind {
	case Text, Name:
		f.SetString(text)
	case Word:
		if !slices.Contains(r.Words, text) {
			return fmt.Errorf("%q is not one of %s%s", Clip(text), strings.Join(r.Words, ", "), DidYouMean(text, r.Words))
		}
		return f.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	case Count:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", Clip(text))
		}
		f.SetInt(int64(n))
	case Duration:
		d, err := ParseDuration(text)
		//guard:stored-duration P8 a value that is no duration is refused, and not stored as another one
		if err != nil {
			return err
		}
		f.SetInt(int64(d))
	case Instant:
		t, err := parseInstant(text)
		if err != nil {
			return err
		}
		f.Set(reflect.ValueOf(t))
	case Names:
		if text != "" {
			f.Set(reflect.ValueOf([]string{text}))
		}
	default:
		return fmt.Errorf("is a single value; write %v", r.Kind)
	}
	return nil
}

// Diff returns the settings in which two jobs differ, in the order of the table. Payloads of the
// same values are equal.
func (b *Binding[T]) Diff(one, two *T) (differ []Setting) {
	v, w := reflect.ValueOf(one).Elem(), reflect.ValueOf(two).Elem()
	for i := range b.rows {
		r := &b.rows[i]
		if !r.equal(r.in(v), r.in(w)) {
			differ = append(differ, r.Setting)
		}
	}
	return differ
}

func (r *row) equal(x, y reflect.Value) bool {
	switch {
	case !given(x) || !given(y):
		return given(x) == given(y)
	case r.Kind == Instant:
		return x.Interface().(time.Time).Equal(y.Interface().(time.Time))
	case r.Kind == JSON:
		return sameJSON(x.Bytes(), y.Bytes())
	default:
		return reflect.DeepEqual(x.Interface(), y.Interface())
	}
}

// sameJSON compares values: neither spaces, the order of keys nor escapes in texts count. Numbers
// differ when their digits do.
func sameJSON(x, y []byte) bool {
	var a, b any
	for _, side := range []struct {
		text []byte
		into *any
	}{{x, &a}, {y, &b}} {
		d := json.NewDecoder(strings.NewReader(string(side.text)))
		d.UseNumber()
		if d.Decode(side.into) != nil {
			return string(x) == string(y)
		}
	}
	return reflect.DeepEqual(a, b)
}
