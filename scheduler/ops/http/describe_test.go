package opshttp

import (
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
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// described is what openapi.json says of a route beside its path.
type described struct {
	summary string
	params  string // of the query
	in, out any    // JSON bodies; nil for none
}

// descriptions are those of all routes.
var descriptions = map[string]described{
	"GET me":                          {"who the request comes from, and which node answers", "", nil, Me{}},
	"GET namespace":                   {"Redis' time, and whether a move has closed the namespace", "", nil, Namespace{}},
	"GET overview":                    {"what runs, what is late, what comes next, and how the last day's ticks ended", "", nil, ops.Overview{}},
	"GET ends":                        {"how the latest ticks of some jobs ended, the oldest first", "jobs each", nil, map[string][]ops.EndView{}},
	"GET jobs":                        {"the jobs by name", "after limit q", nil, []ops.JobView{}},
	"GET job-names":                   {"the names of all jobs, in order", "", nil, []string{}},
	"GET graph":                       {"the jobs that follow others, and those that others follow", "", nil, []ops.GraphJob{}},
	"GET jobs/{name}":                 {"one job", "", nil, ops.JobView{}},
	"PUT jobs/{name}":                 {"store a job that names a handler, or replace a stored one", "dry_run new was", ops.StoredJob{}, ops.StoredJob{}},
	"DELETE jobs/{name}":              {"delete a stored job, or remove one that no node holds, with its history", "was", nil, nil},
	"GET stored-jobs":                 {"the jobs that were stored at run time, by name, with all settings", "name", nil, []ops.StoredJob{}},
	"GET handlers":                    {"the handlers that stored jobs may name", "", nil, []ops.HandlerView{}},
	"GET preview":                     {"the next ticks of a schedule, whether there is such a job or not", "schedule time_zone name except only start_at end_at jitter limit", nil, ops.Preview{}},
	"GET jobs/{name}/ticks":           {"the next instants of a job's schedule", "from limit", nil, []ops.TickView{}},
	"POST jobs/{name}/runs":           {"run a job outside its schedule", "", TriggerRequest{}, Asked{}},
	"POST jobs/{name}/pause":          {"stop a job's schedule", "", PauseRequest{}, nil},
	"POST jobs/{name}/resume":         {"end a job's pause", "", Reason{}, nil},
	"POST jobs/{name}/rewind":         {"run a job's past ticks again", "", RewindRequest{}, Rewound{}},
	"POST jobs/{name}/backfill":       {"run the ticks that a job has in a range, beside its schedule", "", BackfillRequest{}, ops.BackfillPlan{}},
	"DELETE jobs/{name}/backfill":     {"cancel the backfill of a job that is under way", "reason", nil, ops.BackfillView{}},
	"GET backfills":                   {"the backfills that are under way, and the last ended one of each job", "job", nil, []ops.BackfillView{}},
	"GET runs":                        {"runs, those in flight first, and ranges of ticks that did not run", "after limit job since outcome", nil, []ops.RunView{}},
	"GET runs/{run}":                  {"one run, with wait_ms when it has ended or that time is over", "wait_ms", nil, ops.RunView{}},
	"GET runs/{run}/output":           {"the last 64 KiB that a run wrote, as text", "", nil, text("")},
	"POST runs/{run}/cancel":          {"end a run", "", Reason{}, Cancelled{}},
	"POST runs/{run}/rerun":           {"ask for one more attempt of a run that has ended", "", Reason{}, Asked{}},
	"GET nodes":                       {"the nodes by name", "q", nil, []ops.NodeView{}},
	"GET drains":                      {"the drained names of nodes", "", nil, map[string]ops.DrainView{}},
	"POST nodes/{name}/drain":         {"let the nodes of a name claim nothing new", "", Reason{}, nil},
	"POST nodes/{name}/resume":        {"end the drain of a name", "", Reason{}, nil},
	"GET nodes/{name}/rests":          {"whether the nodes of a drained name run nothing any more", "", nil, Rests{}},
	"GET locks":                       {"the locks, and the leases of runs, by name", "after limit q", nil, []ops.LockView{}},
	"GET locks/{name}":                {"what is held by a name", "", nil, ops.LockView{}},
	"POST locks/{name}/release":       {"ask the holder of a lock to end, by its token", "", ReleaseRequest{}, ReleaseAnswer{}},
	"GET generations":                 {"the generations, and what promoting each would change", "q", nil, []ops.GenerationView{}},
	"POST generations/{name}/promote": {"make a generation the one that runs; - is the one without a name", "", PromoteRequest{}, ops.Promotion{}},
	"GET verify":                      {"check the promises on the recorded history", "job since", nil, Verified{}},
	"GET problems":                    {"what is wrong, in words, with what to do: errors first", "", nil, []ops.Problem{}},
	"GET audit":                       {"what operators did, the newest first", "after limit since who", nil, []ops.ActionView{}},
}

// parameterText says what the parameters of queries are.
var parameterText = map[string]struct{ typ, format, doc string }{
	"after":   {"string", "", "the page begins behind this place: the header Escapement-Next of the page before"},
	"limit":   {"integer", "", "how many at most, from 1 to 1,000; default 100, of ticks 20, of a preview 10, and 20 at most"},
	"q":       {"string", "", "a part of the name, in any case of letters"},
	"from":    {"string", "date-time", "behind this instant; default: now"},
	"job":     {"string", "", "only this job"},
	"reason":  {"string", "", "why, for the audit and the history"},
	"each":    {"integer", "", "how many ends of each job, from 1 to 200; default 20; of all jobs 10,000 at most"},
	"jobs":    {"string", "", "one of the jobs; once for each"},
	"since":   {"string", "date-time", "only what has happened since"},
	"outcome": {"string", "", "only runs that ended so, or are running or pending"},
	"wait_ms": {"integer", "", "how long to wait for the end of the run, ms, at most 8,000"},
	"who":     {"string", "", "only what this one did"},
	"name":    {"string", "", "of stored jobs: only that of this name, once for each; of a preview: the job's name, which decides H and the offset of jitter"},
	"new":     {"boolean", "", "refuse to replace a job"},
	"was":     {"string", "date-time", "the version that is replaced or deleted; with another one stored the request is refused"},
	"dry_run": {"boolean", "", "check all, and store nothing"},

	"schedule":  {"string", "", "as of a job"},
	"time_zone": {"string", "", "as of a job; default UTC"},
	"except":    {"string", "", "a date or a range of dates without ticks; once for each"},
	"only":      {"string", "", "a date or a range of dates with ticks; once for each"},
	"start_at":  {"string", "date-time", "as of a job"},
	"end_at":    {"string", "date-time", "as of a job"},
	"jitter":    {"string", "", "as of a job, such as 10m"},
}

type object = map[string]any

// writer makes the schemas of Go types.
type writer struct {
	schemas  object
	comments map[string]map[string]string // type -> field -> comment
}

func (d *writer) schema(t reflect.Type) object {
	marshals := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case t.Kind() == reflect.Pointer:
		return object{"anyOf": []any{d.schema(t.Elem()), object{"type": "null"}}}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{"description": "any JSON"}
	case t == reflect.TypeFor[ops.Stamp]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(marshals):
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
	for _, f := range reflect.VisibleFields(t) {
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous || name == "" {
			continue
		}
		if _, twice := properties[name]; twice {
			panic(t.Name() + ": " + name + " is a setting, and a field beside the settings")
		}
		s := d.schema(f.Type)
		if f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 && options == "" {
			s = object{"anyOf": []any{s, object{"type": "null"}}}
		}
		if c := d.comments[owner(t, f)][f.Name]; c != "" {
			s = with(s, "description", c)
		}
		properties[name] = s
		if !tagged || options == "" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	o := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
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

// owner is the struct that has a field, which may be embedded in another one.
func owner(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return t.Name()
}

// with adds to a schema, one that refers to another in a schema of its own.
func with(s object, name string, value any) object {
	if _, refers := s["$ref"]; refers {
		s = object{"allOf": []any{s}}
	}
	s[name] = value
	return s
}

// comments are those of the fields of all structs in some folders.
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

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// describe is openapi.json as the routes and the types have it.
func describe(t *testing.T) []byte {
	d := &writer{schemas: object{}, comments: comments(t, ".", "..", "../internal/audit", "../internal/ledger", "../internal/diagnose")}
	paths := object{}
	for _, r := range routes {
		key := r.method + " " + r.path
		of, there := descriptions[key]
		if !there {
			t.Fatalf("%s is not described", key)
		}
		at, _ := paths["/"+r.path].(object)
		if at == nil {
			at = object{}
			paths["/"+r.path] = at
		}
		at[strings.ToLower(r.method)] = d.operation(r, of)
	}
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
			"detail": object{"type": "string", "description": "what is wrong, and what to do"}, "code": object{"type": "string", "enum": codes()},
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

// codes are all codes of problems.
func codes() []string {
	all := []string{"bad_request", "too_large", "timeout", "internal", "unauthorized", "forbidden", "cross_origin", "method_not_allowed", "unknown_path", "too_many", "unknown_host", "unsupported_media_type", "no_events"}
	for _, k := range known {
		all = append(all, k.code)
	}
	slices.Sort(all)
	return all
}

func (d *writer) operation(r route, of described) object {
	var params []any
	for _, m := range pathParameter.FindAllStringSubmatch(r.path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for name := range strings.FieldsSeq(of.params) {
		p := parameterText[name]
		s := object{"type": p.typ}
		if name == "jobs" { // the parameter job, once for each
			name, s = "job", object{"type": "array", "items": s, "maxItems": 200}
		}
		if p.format != "" {
			s["format"] = p.format
		}
		params = append(params, object{"name": name, "in": "query", "schema": s, "description": p.doc})
	}
	words := strings.FieldsFunc(r.path, func(c rune) bool { return c == '/' || c == '{' || c == '}' })
	id := strings.ToLower(r.method)
	for _, w := range words {
		id += strings.ToUpper(w[:1]) + w[1:]
	}
	ok := object{"description": "done"}
	status := "204"
	switch of.out.(type) {
	case nil:
	case text:
		status, ok = "200", object{"description": "the text", "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	default:
		status, ok = "200", object{"description": "the answer", "content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(of.out))}}}
	}
	o := object{
		"summary": of.summary, "operationId": id,
		"responses": object{status: ok, "default": object{"$ref": "#/components/responses/Problem"}},
		"x-role":    r.role.String(),
	}
	if params != nil {
		o["parameters"] = params
	}
	if of.in != nil {
		o["requestBody"] = object{"content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(of.in))}}}
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
	if len(descriptions) != len(routes) {
		t.Error("a description belongs to no route")
	}
}
