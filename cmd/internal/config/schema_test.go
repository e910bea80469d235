package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs/spec"
)

type schemaObject = map[string]any

// schemer makes the schema of a configuration: types and keys from the structs, defaults from a
// value, and descriptions from the comments.
type schemer struct {
	comments map[string]map[string]string // struct -> field -> comment
}

// explained are the structs whose comments are in other packages.
var explained = map[string]string{"Call": "httpjob.Options", "Target": "notify.Target", "Webhook": "notify.Webhook"}

// section returns the schema of a struct. Defaults are the values of v, where it has any.
func (s *schemer) section(t reflect.Type, v reflect.Value) schemaObject {
	properties := schemaObject{}
	for k := range t.NumField() {
		f := t.Field(k)
		var its reflect.Value
		if v.IsValid() {
			its = v.Field(k)
		}
		p := s.setting(f, its)
		if text := s.comment(t.Name(), f); text != "" {
			p["description"] = text
		}
		properties[f.Tag.Get("yaml")] = p
	}
	return sectionOf(properties)
}

func sectionOf(properties schemaObject) schemaObject {
	return schemaObject{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// job returns the schema of an entry under jobs: the rows of the table, and the job's work.
func (s *schemer) job() schemaObject {
	o := s.section(reflect.TypeFor[Handler](), reflect.Value{})
	properties := o["properties"].(schemaObject)
	required := []string{}
	for _, row := range spec.All() {
		if !isEntrySetting(row) {
			continue
		}
		if row.Required {
			required = append(required, row.Name)
		}
		into := properties
		if section := row.Section(); section != "" {
			if properties[section] == nil {
				properties[section] = sectionOf(schemaObject{})
			}
			into = properties[section].(schemaObject)["properties"].(schemaObject)
		}
		into[row.Key()] = rowSchema(row)
	}
	o["type"], o["required"] = "object", required
	return o
}

// rowSchema is the schema of a setting of a job.
func rowSchema(row spec.Setting) schemaObject {
	o := schemaObject{"description": rowText(row)}
	item := schemaObject{"type": plainTypes}
	switch row.Kind {
	case spec.Word:
		o["enum"] = row.Words
	case spec.Count:
		o["type"], o["minimum"] = "integer", row.Min
		if row.Max > 0 {
			o["maximum"] = row.Max
		}
	case spec.Duration:
		o["type"], o["pattern"] = "string", durationPattern
	case spec.Instant:
		o["type"], o["format"] = "string", "date-time"
	case spec.Texts:
		o["type"], o["items"] = []string{"array", "null"}, item
	case spec.Names:
		o["type"], o["items"] = append([]string{"array", "null"}, plainTypes...), item
	case spec.Labels:
		o["type"], o["additionalProperties"] = []string{"object", "null"}, item
	default:
		o["type"] = plainTypes
	}
	switch {
	case inDefaults(row): // of the section defaults
	case row.Kind == spec.Word:
		o["default"] = row.Words[0]
	case row.Kind == spec.Count && row.Default != "":
		o["default"] = json.Number(row.Default)
	case row.Default != "":
		o["default"] = row.Default
	}
	return o
}

func inDefaults(row spec.Setting) bool {
	return slices.ContainsFunc(settings(reflect.ValueOf(Defaults{})), func(s setting) bool { return s.key == row.Name })
}

// rowText describes a setting: its effect, its bounds, and the settings it needs.
func rowText(row spec.Setting) string {
	text := strings.ToUpper(row.Sentence[:1]) + row.Sentence[1:] + "."
	if bounds := row.Bounds(); bounds != "" {
		text += " " + strings.ToUpper(bounds[:1]) + bounds[1:] + "."
	}
	if row.With != "" {
		text += " Only with " + row.With + "."
	}
	if row.Unscheduled {
		text += " A job with after has none."
	}
	if inDefaults(row) {
		text += " Default: defaults." + row.Name + "."
	}
	return text
}

func (s *schemer) comment(of string, f reflect.StructField) string {
	text := s.comments["config."+of][f.Name]
	if elsewhere := explained[of]; text == "" && elsewhere != "" {
		text = s.comments[elsewhere][f.Name]
	}
	if text == "" && f.Type.Kind() == reflect.Struct {
		text = s.comments["config"][f.Type.Name()]
	}
	if text == "" && f.Type.Kind() == reflect.Pointer {
		text = s.comments["config"][f.Type.Elem().Name()]
	}
	return text
}

// setting returns the schema of one field. A text may be written as a number or as true; a section
// or a list may be empty.
func (s *schemer) setting(f reflect.StructField, v reflect.Value) schemaObject {
	t := f.Type
	o := schemaObject{}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		o = schemaObject{"type": "string", "pattern": durationPattern}
		if v.IsValid() && v.Int() != 0 {
			o["default"] = spec.FormatDuration(time.Duration(v.Int()))
		}
		return o
	case t.Kind() == reflect.Pointer:
		return s.section(t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Struct:
		return s.section(t, v)
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Slice:
		list := schemaObject{"type": []string{"array", "null"}, "items": schemaObject{"type": plainTypes}}
		return schemaObject{"type": []string{"object", "null"}, "additionalProperties": list}
	case t.Kind() == reflect.Map:
		return schemaObject{"type": []string{"object", "null"}, "additionalProperties": schemaObject{"type": plainTypes}}
	case t.Kind() == reflect.Slice && t.Elem() == jobEntryType:
		return schemaObject{"type": []string{"array", "null"}, "items": s.job()}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return schemaObject{"type": []string{"array", "null"}, "items": s.section(t.Elem(), reflect.Value{})}
	case t.Kind() == reflect.Slice:
		return schemaObject{"type": []string{"array", "null"}, "items": schemaObject{"type": plainTypes}}
	case t.Kind() == reflect.Int:
		o["type"] = "integer"
	case len(wordsOf(f.Tag)) > 0:
		o["enum"] = wordsOf(f.Tag)
	default:
		o["type"] = plainTypes
	}
	if v.IsValid() && (len(wordsOf(f.Tag)) == 0 || !v.IsZero()) {
		o["default"] = v.Interface()
	}
	return o
}

var plainTypes = []string{"string", "number", "boolean"}

// durationPattern is less strict than parseDuration: it lets editors find slips.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|d))+$`

// fieldComments are the comments of structs and their fields in a file.
func fieldComments(t *testing.T, file string, to map[string]map[string]string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	line := func(texts ...string) string {
		for _, text := range texts {
			if text != "" {
				return strings.Join(strings.Fields(text), " ")
			}
		}
		return ""
	}
	pkg := f.Name.Name
	if to[pkg] == nil {
		to[pkg] = make(map[string]string)
	}
	for _, d := range f.Decls {
		g, is := d.(*ast.GenDecl)
		if !is || g.Tok != token.TYPE {
			continue
		}
		typ := g.Specs[0].(*ast.TypeSpec)
		s, is := typ.Type.(*ast.StructType)
		if !is {
			continue
		}
		to[pkg][typ.Name.Name] = line(g.Doc.Text())
		fields := make(map[string]string)
		for _, field := range s.Fields.List {
			for _, name := range field.Names {
				fields[name.Name] = line(field.Doc.Text(), field.Comment.Text())
			}
		}
		to[pkg+"."+typ.Name.Name] = fields
	}
}

// makeSchema is the schema of config.yaml.
func makeSchema(t *testing.T) string {
	t.Helper()
	s := &schemer{comments: make(map[string]map[string]string)}
	for _, file := range []string{"config.go", "locks.go", "../../../jobs/httpjob/httpjob.go", "../../../scheduler/notify/notify.go", "../../../scheduler/notify/webhook.go"} {
		fieldComments(t, file, s.comments)
	}
	root := s.section(reflect.TypeFor[Config](), reflect.ValueOf(Default()))
	root["$schema"], root["title"] = "http://json-schema.org/draft-07/schema#", "Configuration of an Escapement node"
	root["type"] = "object"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// makeExample is the output of config init: the repository's config.yaml with another beginning.
func makeExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n# Each setting outside the jobs")
	if !found {
		t.Fatal("config.yaml has no line that says how settings become variables")
	}
	return `# Every setting of an Escapement node with its default, and a few jobs to watch. Change what you need.
#
#   escapement config validate FILE      tell everything that is wrong with it
#   escapement dev --config FILE         try it: three nodes and an embedded Redis in one process
#   escapement run --config FILE         one node, with the Redis of redis.url
#
# Write the schema beside this file for an editor that checks while you type: escapement config schema > config.schema.json
# yaml-language-server: $schema=config.schema.json
#
# Each setting outside the jobs` + rest
}

// TestSchemaIsFresh: the outputs of config schema and config init are made from config.go and
// config.yaml, whose first line leads editors to the schema.
func TestSchemaIsFresh(t *testing.T) {
	schema := makeSchema(t)
	testkit.Golden(t, "config.schema.json", schema)
	testkit.Golden(t, "example.yaml", makeExample(t))
	text, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	_, file, _ := strings.Cut(first, "$schema=")
	if got, err := os.ReadFile("../../../" + file); err != nil || string(got) != schema {
		t.Errorf("config.yaml: %q is not the schema: %v", file, err)
	}
}

// asJSON is a YAML file as an editor sees it.
func asJSON(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(root.Content) == 0 {
		return nil
	}
	return plainValue(t, root.Content[0])
}

func plainValue(t *testing.T, n *yaml.Node) any {
	t.Helper()
	if n.Kind == yaml.MappingNode {
		o := schemaObject{}
		for k := 0; k < len(n.Content); k += 2 {
			o[n.Content[k].Value] = plainValue(t, n.Content[k+1])
		}
		return o
	}
	if n.Kind == yaml.SequenceNode {
		all := []any{}
		for _, c := range n.Content {
			all = append(all, plainValue(t, c))
		}
		return all
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	switch v.(type) {
	case string, int, float64, bool, nil:
		return v
	}
	return n.Value // a time is a text to an editor
}

// TestSchema: the sample and every file of testdata without a fault are valid, and a value of the
// wrong kind is not.
func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(SchemaText))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"../../../config.yaml", "example.yaml"}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".want"); err != nil || strings.HasPrefix(string(want), "no fault") {
			good = append(good, file)
		}
	}
	if len(good) < 6 {
		t.Errorf("only %v are good", good)
	}
	for _, file := range good {
		if err := schema.Validate(asJSON(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range []string{"anchors", "defaults", "keys", "list", "null", "types", "words"} {
		err := schema.Validate(asJSON(t, "testdata/"+name+".yaml"))
		if wrong := new(jsonschema.ValidationError); !errors.As(err, &wrong) {
			t.Errorf("%s.yaml is valid: %v", name, err)
		}
	}
}
