package jobs

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A shape is JSON that describes a payload: the name of a type of JSON, {"list": SHAPE}, {"map":
// SHAPE}, or {"fields": {NAME: SHAPE}}. The empty text and "any" fit everything.
const (
	anyShape = "any"
	// timeShape is of a text of RFC 3339. An older version takes the name for "any".
	timeShape = "time"
	// shapeDepth is how deep a shape goes. Deeper levels fit everything, as in a type that holds
	// itself.
	shapeDepth = 8
	// maxShape bounds a shape, in bytes. A type with a longer one fits everything.
	maxShape = 4096
)

// scalars are the shapes of one value, with a type that takes the same values.
var scalars = map[string]reflect.Type{
	"string": reflect.TypeFor[string](), "boolean": reflect.TypeFor[bool](), "integer": reflect.TypeFor[int64](),
	"number": reflect.TypeFor[float64](), anyShape: reflect.TypeFor[any](), timeShape: reflect.TypeFor[instant](),
}

// instant takes the texts that a time.Time takes, with an error that encoding/json adds the field
// to.
type instant struct{}

// UnmarshalJSON checks a text of RFC 3339.
func (instant) UnmarshalJSON(text []byte) error {
	if new(time.Time).UnmarshalJSON(text) == nil {
		return nil
	}
	return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[time.Time]()}
}

// HandleTyped adds a handler as Registry.Handle does, with the function of Typed. Nodes declare the
// shape of its payloads, so that PutJob refuses a stored job whose payload does not fit T, before
// its first run. PutJob checks a time.Time too; any other type with a decoder of its own
// (json.Unmarshaler, encoding.TextUnmarshaler) is checked only by the run.
func HandleTyped[T any](r *Registry, name string, f func(ctx context.Context, run *Run, payload T) error) error {
	if err := r.Handle(name, Typed(f)); err != nil {
		return err
	}
	text, err := json.Marshal(shapeOf(reflect.TypeFor[T](), shapeDepth))
	if err != nil {
		return fmt.Errorf("handler %s: its type of payload: %w", name, err)
	}
	if len(text) > maxShape {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shapes == nil {
		r.shapes = make(map[string]string)
	}
	r.shapes[name] = string(text)
	return nil
}

// PayloadShape returns the shape of a handler's payloads, for CheckPayload: "" for a handler that
// HandleTyped has not added.
func (r *Registry) PayloadShape(handler string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.shapes[handler]
}

// CheckPayload checks that a payload fits a shape of Registry.PayloadShape. The error is a
// *FieldError that names the field. A shape that cannot be read fits everything.
func CheckPayload(shape string, payload []byte) error {
	var s any
	if bad := json.Unmarshal([]byte(shape), &s); bad != nil {
		s = anyShape
	}
	return decodePayload(payload, reflect.New(typeOf(s, shapeDepth)).Interface())
}

var (
	decodesJSON = reflect.TypeFor[json.Unmarshaler]()
	decodesText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf is the shape of the JSON that encoding/json decodes into a type.
func shapeOf(t reflect.Type, depth int) any {
	if t == reflect.TypeFor[time.Time]() && depth > 0 {
		return timeShape
	}
	if p := reflect.PointerTo(t); depth == 0 || p.Implements(decodesJSON) || p.Implements(decodesText) {
		return anyShape
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), depth-1)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string" // in base64
		}
		return map[string]any{"list": shapeOf(t.Elem(), depth-1)}
	case reflect.Map:
		return map[string]any{"map": shapeOf(t.Elem(), depth-1)}
	case reflect.Struct:
		return structShape(t, depth)
	default:
		return anyShape
	}
}

func structShape(t reflect.Type, depth int) any {
	fields := make(map[string]any)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			return anyShape // whose fields are this type's, by rules of their own
		case !f.IsExported() || name == "-" && options == "":
			continue
		case strings.Contains(options, "string"):
			fields[cmp.Or(name, f.Name)] = anyShape
		default:
			fields[cmp.Or(name, f.Name)] = shapeOf(f.Type, depth-1)
		}
	}
	return map[string]any{"fields": fields}
}

// typeOf is a type into which encoding/json decodes a payload of a shape.
func typeOf(shape any, depth int) reflect.Type {
	if word, is := shape.(string); is {
		if t := scalars[word]; t != nil {
			return t
		}
	}
	parts, _ := shape.(map[string]any)
	for kind, part := range parts {
		fields, _ := part.(map[string]any)
		switch {
		case depth == 0:
		case kind == "list":
			return reflect.SliceOf(typeOf(part, depth-1))
		case kind == "map":
			return reflect.MapOf(scalars["string"], typeOf(part, depth-1))
		case kind == "fields":
			return structOf(fields, depth)
		}
	}
	return scalars[anyShape]
}

func structOf(fields map[string]any, depth int) reflect.Type {
	var list []reflect.StructField
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, reflect.StructField{
			Name: fmt.Sprint("F", len(list)), Type: typeOf(fields[name], depth-1), Tag: reflect.StructTag("json:" + strconv.Quote(name)),
		})
	}
	return reflect.StructOf(list)
}
