package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// decoder fills the configuration from a YAML tree. It goes on after a fault, so that all faults
// are reported at once, and notes the line of every setting.
type decoder struct {
	origins
	faults Faults

	// The text between the brackets of jobs[...] and notify.targets[...], per entry.
	jobLabels, targetLabels []string
}

// setting is one field of a section as the decoder sees it.
type setting struct {
	key   string
	words []string // the only texts allowed; none: any
	value reflect.Value

	Secret bool // no message shows the value
}

// settings lists the fields of a section, in the order of the struct.
func settings(section reflect.Value) []setting {
	list := make([]setting, 0, section.NumField())
	for i := range section.NumField() {
		tag := section.Type().Field(i).Tag
		_, secret := tag.Lookup("secret")
		list = append(list, setting{
			key:    tag.Get("yaml"),
			words:  wordsOf(tag),
			value:  section.Field(i),
			Secret: secret,
		})
	}
	return list
}

func (d *decoder) fault(n *yaml.Node, path, format string, args ...any) {
	d.faults.Add(Place{File: d.File, Line: n.Line}, path, format, args...)
}

// decode reads node n, found at path, into the setting.
func (d *decoder) decode(n *yaml.Node, path string, s setting) {
	d.line(path, n.Line)
	if n.Kind == yaml.AliasNode {
		d.alias(n, path)
		return
	}
	v := s.value
	switch {
	case v.Type() == jobEntryType:
		if d.is(n, yaml.MappingNode, path, s) {
			d.job(n, path, v.Addr().Interface().(*jobEntry))
		}
	case v.Kind() == reflect.Pointer:
		if d.is(n, yaml.MappingNode, path, s) {
			v.Set(reflect.New(v.Type().Elem()))
			d.section(n, path, v.Elem())
		}
	case v.Kind() == reflect.Struct:
		if d.is(n, yaml.MappingNode, path, s) {
			d.section(n, path, v)
		}
	case v.Kind() == reflect.Map:
		if d.is(n, yaml.MappingNode, path, s) {
			d.freeMap(n, path, v, s.Secret)
		}
	case v.Kind() == reflect.Slice:
		if d.is(n, yaml.SequenceNode, path, s) {
			d.list(n, path, v, s.Secret)
		}
	default:
		if d.is(n, yaml.ScalarNode, path, s) {
			d.scalar(n, path, s)
		}
	}
}

func (d *decoder) alias(n *yaml.Node, path string) {
	d.fault(n, path, "anchors and aliases (&%s, *%s) are not read; write the value out", n.Value, n.Value)
}

// section reads a mapping whose keys are the fields of a struct.
func (d *decoder) section(n *yaml.Node, path string, v reflect.Value) {
	known := settings(v)
	d.pairs(n, path, true, func(key, value *yaml.Node) {
		for _, s := range known {
			if s.key == key.Value {
				d.decode(value, join(path, s.key), s)
				return
			}
		}
		d.unknown(key, path, known)
	})
}

// unknown reports a key that its section does not have.
func (d *decoder) unknown(key *yaml.Node, path string, known []setting) {
	if key.Value == "<<" {
		d.fault(key, join(path, "<<"), "merge keys are not read; write the settings out, or set them for all jobs under defaults")
		return
	}
	keys := make([]string, len(known))
	for i, s := range known {
		keys[i] = s.key
	}
	hint := spec.DidYouMean(key.Value, keys)
	if elsewhere := settingNamed(key.Value); hint == "" && elsewhere != "" {
		hint = "; did you mean " + elsewhere
	}
	if hint == "" {
		hint = "; known here: " + strings.Join(keys, ", ")
	}
	d.fault(key, join(path, keyName(key.Value)), "unknown key%s", hint)
}

// pairs walks the keys of a mapping; a key that is no plain text, or is repeated, is a fault and is
// left out. cut: a key may have a secret in it.
func (d *decoder) pairs(n *yaml.Node, path string, cut bool, each func(key, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			d.fault(key, path, "a key must be plain text, here is %s", describe(key))
			continue
		}
		if line, twice := seen[key.Value]; twice {
			name := spec.Clip(key.Value)
			if cut {
				name = keyName(key.Value)
			}
			d.fault(key, join(path, name), "given twice, first at line %d; keep one", line)
			continue
		}
		seen[key.Value] = key.Line
		each(key, value)
	}
}

// freeMap reads a mapping of free keys to texts, or to lists of them: labels, env and calendars.
func (d *decoder) freeMap(n *yaml.Node, path string, v reflect.Value, secret bool) {
	m := reflect.MakeMap(v.Type())
	d.pairs(n, path, secret, func(key, value *yaml.Node) {
		one := reflect.New(v.Type().Elem()).Elem()
		name := key.Value
		if secret {
			name = keyName(name)
		}
		d.decode(value, join(path, name), setting{value: one, Secret: secret})
		m.SetMapIndex(reflect.ValueOf(key.Value), one)
	})
	v.Set(m)
}

// list reads a sequence, of texts or of sections.
func (d *decoder) list(n *yaml.Node, path string, v reflect.Value, secret bool) {
	var before []string
	if path == "jobs" {
		before = d.jobLabels
	}
	labels := itemLabels(n, before)
	switch path {
	case "jobs":
		d.jobLabels = append(d.jobLabels, labels...)
	case "notify.targets":
		d.targetLabels = labels
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(item, path+"["+labels[i]+"]", setting{value: v.Index(i), Secret: secret})
	}
}

// plainName is a name that is unambiguous in a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9]*[A-Za-z._:/-][A-Za-z0-9._:/-]*$`)

// itemLabels names the items of a sequence for messages: by the item's own name, if it is plain and
// no earlier item has it, else by its index from 0. A name of digits only would be taken for an
// index. before has the labels of earlier items of the sequence, from other files.
func itemLabels(n *yaml.Node, before []string) []string {
	labels, taken := make([]string, len(n.Content)), map[string]bool{}
	for _, label := range before {
		taken[label] = true
	}
	for i, item := range n.Content {
		labels[i] = fmt.Sprint(len(before) + i)
		for k := 0; item.Kind == yaml.MappingNode && k+1 < len(item.Content); k += 2 {
			name := item.Content[k+1].Value
			if item.Content[k].Value == "name" && plainName.MatchString(name) && !taken[name] {
				labels[i] = name
			}
		}
		taken[labels[i]] = true
	}
	return labels
}

// scalar reads a single value. A text may be written as a number or as true, and is read as typed:
// such values are common in labels, params and env. A number may not be written as a text.
func (d *decoder) scalar(n *yaml.Node, path string, s setting) {
	number := s.value.Kind() != reflect.String && s.value.Type() != durationType
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		d.fault(n, path, "has no value; write one or remove the line")
	case number && tag != "!!int":
		d.fault(n, path, "want a whole number, found %s", describe(n))
	default:
		if err := setText(s.value, s.words, n.Value); err != nil {
			d.fault(n, path, "%v", err)
		}
	}
}

// is reports whether a node has the wanted kind, and adds a fault if it does not. An empty section
// or list, whose lines are all comments, is accepted.
func (d *decoder) is(n *yaml.Node, want yaml.Kind, path string, s setting) bool {
	if n.Kind == want {
		return d.plain(n, path, s.Secret)
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return false
	}
	words := map[yaml.Kind]string{
		yaml.ScalarNode:   "a single value",
		yaml.MappingNode:  "a section of `key: value` lines",
		yaml.SequenceNode: "a list, like [a, b]",
	}
	found := describe(n)
	if s.Secret || hasSecret(s.value.Type()) { // a secret without its key may stand in place of a section
		found = nodeKind(n)
	}
	wanted := words[want]
	if example := workSections[path[max(0, strings.LastIndexByte(path, '.')):]]; want == yaml.MappingNode && example != "" {
		wanted += ", such as " + example
	}
	d.fault(n, path, "want %s, found %s", wanted, found)
	return false
}

// workSections are examples of sections, for a fault where a single value is written.
var workSections = map[string]string{".webhook": "{url: ...}", ".exec": "{command: [./job]}", ".http": "{url: ...}"}

// plainTags are the tags that the parser gives to values without a written tag.
var plainTags = map[yaml.Kind][]string{
	yaml.ScalarNode:   {"!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!null", "!!merge"},
	yaml.MappingNode:  {"!!map"},
	yaml.SequenceNode: {"!!seq"},
}

// plain reports whether a node has no tag that would change its meaning, and adds a fault if it has
// one.
func (d *decoder) plain(n *yaml.Node, path string, secret bool) bool {
	tag := n.ShortTag()
	switch {
	case slices.Contains(plainTags[n.Kind], tag):
		return true
	case secret: // the tag may be the secret itself
		d.fault(n, path, "a YAML tag is not read; put a value that begins with ! in quotes")
	default:
		d.fault(n, path, "the YAML tag %s is not read", spec.Clip(tag))
	}
	return false
}

// describe returns a node in words for a person.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		return nodeKind(n)
	case n.Value == "":
		return "nothing"
	case n.ShortTag() == "!!str":
		return "the text " + print.Quote(n.Value)
	default:
		return spec.Clip(n.Value)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
