package opshttp

import (
	"strconv"
	"time"

	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

var update = flag.Bool("update", false, "write openapi.json anew")

type object = map[string]any

// writer makes the schemas of Go types.
type writer struct {
	schemas  object
	comments map[string]map[string]string // type -> field -> comment
}

func (d *writer) schema(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(d.schema(t.Elem()))
	case t == reflect.TypeFor[json.RawMessage]():
		return object{"description": "any JSON"}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		if _, there := d.schemas[t.Name()]; !there {
			d.schemas[t.Name()] = nil // it may contain itself
			d.schemas[t.Name()] = d.object(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	default:
		return object{"type": "integer"}
	}
}

func nullable(s object) object { return object{"anyOf": []any{s, object{"type": "null"}}} }

// field is the schema of a field, with its comment.
func (d *writer) field(t reflect.Type, f wire.Field) object {
	s := d.schema(f.Type)
	switch {
	case f.Token():
		s = object{"type": "string"}
	case f.Type == reflect.TypeFor[time.Time]() && !f.Set:
		s = nullable(s)
	}
	if c := d.comment(t, f); c != "" {
		s = with(s, "description", c)
	}
	return s
}

// comment is the comment of a field, which may be in an embedded struct.
func (d *writer) comment(t reflect.Type, f wire.Field) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return d.comments[t.Name()][t.Field(f.Index[len(f.Index)-1]).Name]
}

func (d *writer) object(t reflect.Type) object {
	properties, required := object{}, []string{}
	switch t { // the types whose JSON has the settings beside their own fields
	case reflect.TypeFor[ops.JobView]():
		properties = settings(true)
		required = slices.Collect(maps.Keys(properties))
	case reflect.TypeFor[ops.StoredJob]():
		properties, required = settings(false), []string{"handler", "name"}
		properties["version"] = object{"type": "string", "format": "date-time", "description": d.comments[t.Name()]["Version"]}
	}
	for _, f := range wire.Fields(t) {
		if f.Source != wire.Body {
			continue
		}
		if _, twice := properties[f.Name]; twice {
			panic(t.Name() + ": " + f.Name + " is a setting, and a field beside the settings")
		}
		properties[f.Name] = d.field(t, f)
		if !f.Optional() {
			required = append(required, f.Name)
		}
	}
	slices.Sort(required)
	o := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// parameter is a parameter of a query.
func (d *writer) parameter(t reflect.Type, f wire.Field) object {
	s := d.schema(f.Type)
	if f.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(f.Name, "_ms") {
		s = object{"type": "string"}
	}
	for tag, name := range map[string]string{"min": "minimum", "max": "maximum", "default": "default"} {
		if n, err := strconv.Atoi(f.Tag.Get(tag)); err == nil {
			if s["type"] == "array" {
				name = "maxItems"
			}
			s[name] = n
		}
	}
	return object{"name": f.Name, "in": "query", "schema": s, "description": d.comment(t, f)}
}

// settings are the properties that the table of settings makes; shown: each is there, some as null.
func settings(shown bool) object {
	properties := object{}
	for _, s := range spec.All() {
		at := properties
		if name := s.Section(); name != "" {
			if properties[name] == nil {
				properties[name] = object{"type": "object", "properties": object{}, "additionalProperties": false}
			}
			in := properties[name].(object)
			if at = in["properties"].(object); shown {
				required, _ := in["required"].([]string)
				in["required"] = append(required, s.Key())
			}
		}
		of := settingSchema(s)
		if shown && (s.Kind == spec.Duration || s.Kind == spec.Instant) {
			of = object{"anyOf": []any{of, object{"type": "null"}}}
		}
		of["description"] = settingText(s)
		at[s.Key()] = of
	}
	for name, of := range properties {
		if o := of.(object); shown && o["properties"] != nil {
			properties[name] = object{"anyOf": []any{o, object{"type": "null"}}}
		}
	}
	return properties
}

// settingText is the sentence of a setting, with its bounds and its default.
func settingText(s spec.Setting) string {
	text := s.Sentence
	if s.Kind == spec.Duration {
		text += "; a duration such as 90s, 5m or 2d"
		if b := s.Bounds(); b != "" {
			text += ", " + b
		}
	}
	if s.Default != "" {
		text += "; default " + s.Default
	}
	return text
}

func settingSchema(s spec.Setting) object {
	texts := object{"type": "array", "items": object{"type": "string"}}
	switch s.Kind {
	case spec.Word:
		return object{"type": "string", "enum": s.Words, "default": s.Words[0]}
	case spec.Count:
		of := object{"type": "integer", "minimum": 0} // 0 stands for none
		if s.Max > 0 {
			of["maximum"] = s.Max
		}
		return of
	case spec.Instant:
		return object{"type": "string", "format": "date-time"}
	case spec.Texts, spec.Names:
		return texts
	case spec.Labels:
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	case spec.JSON:
		return object{}
	default:
		return object{"type": "string"}
	}
}

// with adds a value to a schema; to a reference, in a schema around it.
func with(s object, name string, value any) object {
	if _, refers := s["$ref"]; refers {
		s = object{"allOf": []any{s}}
	}
	s[name] = value
	return s
}

// comments are the comments of all structs' fields in some folders.
func comments(t *testing.T, folders ...string) map[string]map[string]string {
	all := make(map[string]map[string]string)
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				typ, is := n.(*ast.TypeSpec)
				if !is {
					return true
				}
				if s, is := typ.Type.(*ast.StructType); is {
					all[typ.Name.Name] = fieldComments(s)
				}
				return false
			})
		}
	}
	return all
}

func fieldComments(s *ast.StructType) map[string]string {
	of := make(map[string]string)
	for _, f := range s.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		for _, name := range f.Names {
			of[name.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
	return of
}

// describe is openapi.json as the routes and the types have it.
func describe(t *testing.T) []byte {
	d := &writer{schemas: object{}, comments: comments(t, ".", "..", "../../internal/audit", "../../internal/ledger", "../internal/doctor")}
	paths := object{}
	add := func(r ops.Info, in, out any) {
		at, _ := paths["/"+r.Path].(object)
		if at == nil {
			at = object{}
			paths["/"+r.Path] = at
		}
		at[strings.ToLower(r.Method)] = d.operation(r, in, out)
	}
	for _, o := range ops.Operations() {
		in, out := o.New()
		add(o.About(), in, out)
	}
	add(routes()[0].Info, &ops.None{}, &Me{})
	add(routes()[1].Info, &struct {
		Run string `path:"run"`
	}{}, new(string))
	paths["/events"] = object{"get": object{
		"summary": "what changes, as server-sent events",
		"description": "An event runs has an array of runs that are new or have changed, nodes an array of all nodes. gap says that some events are not kept any more: read the lists again. " +
			"Send the id of the last event in the header Last-Event-ID to go on behind it.",
		"operationId": "getEvents",
		"responses": object{
			"200":     object{"description": "events, until the connection ends", "content": object{"text/event-stream": object{"schema": object{"type": "string"}}}},
			"default": object{"$ref": "#/components/responses/Problem"},
		},
	}}
	paths["/openapi.json"] = object{"get": object{
		"summary": "this description", "operationId": "getOpenAPI",
		"responses": object{"200": object{"description": "OpenAPI 3.1", "content": object{"application/json": object{"schema": object{"type": "object"}}}}, "default": object{"$ref": "#/components/responses/Problem"}},
	}}
	d.schemas["ProblemDetails"] = object{
		"type": "object", "required": []string{"type", "title", "status", "detail", "code"}, "additionalProperties": false,
		"properties": object{
			"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
			"detail": object{"type": "string", "description": "what is wrong, and what to do"}, "code": object{"type": "string", "enum": allCodes()},
			"faults": object{"type": "array", "description": "what is wrong with single settings, where the error is about settings", "items": d.schema(reflect.TypeFor[ops.FaultView]())},
		},
	}
	root := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Escapement", "version": "1",
			"description": "Reads and operates a namespace. Times are RFC 3339 in UTC with milliseconds, settings that are durations are texts such as 90s, 5m or 2d, " +
				"and durations that were measured are whole milliseconds in fields that end in _ms. Tokens are strings. " +
				"Lists are arrays; the header Link names the next page, Escapement-Next has its after, percent-encoded. Escapement-Incomplete says what a list lacks while a master of a Cluster does not answer, " +
				"and which records cannot be read; Escapement-Unreadable is how many those are. " +
				"Escapement-Warning says that an action is done and not in the audit. Where nobody needs to prove who it is, Escapement-Author says it. Escapement-Reason is for the audit.",
		},
		"servers":  []any{object{"url": strings.TrimSuffix(Prefix, "/")}},
		"paths":    paths,
		"security": []any{object{}, object{"bearer": []any{}}, object{"basic": []any{}}},
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}, "basic": object{"type": "http", "scheme": "basic"}},
			"responses": object{"Problem": object{
				"description": "an error", "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/ProblemDetails"}}},
			}},
		},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// allCodes are all codes of problems.
func allCodes() []string {
	all := []string{"internal", "method_not_allowed", "unknown_path", "unknown_host", "no_events"}
	for _, k := range codes {
		all = append(all, k.code)
	}
	slices.Sort(all)
	return all
}

func (d *writer) operation(r ops.Info, in, out any) object {
	var params []any
	t, body := reflect.TypeOf(in).Elem(), object{}
	var required []string
	for _, f := range wire.Fields(t) {
		switch {
		case f.Source == wire.Path:
			params = append(params, object{"name": f.Name, "in": "path", "required": true, "schema": object{"type": "string"}})
		case f.Source == wire.Query:
			params = append(params, d.parameter(t, f))
		case f.Whole():
			body = d.schema(f.Type)
		default:
			body[f.Name] = d.field(t, f)
			if !f.Optional() {
				required = append(required, f.Name)
			}
		}
	}
	id := strings.ToLower(r.Method)
	for w := range strings.FieldsFuncSeq(r.Path, func(c rune) bool { return c == '/' || c == '{' || c == '}' }) {
		id += strings.ToUpper(w[:1]) + w[1:]
	}
	status, ok := "200", object{"description": "the answer"}
	switch of := out.(type) {
	case *ops.None:
		status, ok = "204", object{"description": "done"}
	case *string:
		ok = object{"description": "the text", "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	case ops.Listing:
		items, _, _ := of.Part()
		ok["content"] = object{"application/json": object{"schema": d.schema(reflect.TypeOf(items).Elem())}}
	default:
		ok["content"] = object{"application/json": object{"schema": d.schema(reflect.TypeOf(out).Elem())}}
	}
	o := object{
		"summary": r.Summary, "operationId": id,
		"responses": object{status: ok, "default": object{"$ref": "#/components/responses/Problem"}},
		"x-role":    r.Role.String(),
	}
	if params != nil {
		o["parameters"] = params
	}
	if len(body) > 0 {
		if body["$ref"] == nil {
			body = object{"type": "object", "properties": body, "additionalProperties": false}
			if required != nil {
				body["required"] = required
			}
		}
		o["requestBody"] = object{"content": object{"application/json": object{"schema": body}}}
	}
	return o
}

// TestDescription: openapi.json is what the routes and the types have.
func TestDescription(t *testing.T) {
	now := describe(t)
	if *update {
		if err := os.WriteFile("openapi.json", now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(now, description) {
		t.Error("openapi.json is out of date: go test ./scheduler/ops/http -run TestDescription -update")
	}
}
