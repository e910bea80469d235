package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// jobEntry is one entry under jobs.
type jobEntry struct {
	settings jobs.Job       // as they were written: without defaults, and with names of calendars
	work     Handler        // the job's command or HTTP call
	lines    map[string]int // of the settings that were given, by their names
}

var jobEntryType = reflect.TypeFor[jobEntry]()

// entrySettings are the settings of an entry under jobs: all settings but the ones of stored jobs
// alone.
var entrySettings = jobs.Settings.Only(isEntrySetting, "exec", "http")

func isEntrySetting(s spec.Setting) bool { return !s.Handled }

// given reports whether the entry has a setting, whatever its value is.
func (e *jobEntry) given(name string) bool {
	_, has := e.lines[name]
	return has
}

// node is the entry as printed, with the settings that were given.
func (e *jobEntry) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	text, err := jobs.Settings.EncodeSome(&e.settings, func(s spec.Setting) bool { return e.given(s.Name) })
	if err == nil { // else a setting has a fault, and nothing is printed
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		n, _ = yamlNode(d) // Encode has written it
	}
	for i := 1; i < len(n.Content); i += 2 {
		value := n.Content[i]
		switch s, setting := spec.Named(n.Content[i-1].Value); {
		case s.Kind == spec.Names && len(value.Content) == 1:
			n.Content[i] = value.Content[0]
		case setting:
			value.Style |= yaml.FlowStyle
		}
	}
	n.Content = append(n.Content, sectionNode(reflect.ValueOf(e.work), true).Content...)
	n.Style = 0
	return n
}

// job reads an entry under jobs.
func (d *decoder) job(n *yaml.Node, path string, e *jobEntry) {
	doc := TableNode(n)
	work := settings(reflect.ValueOf(&e.work).Elem())
	d.members(doc, n, path, "", func(key, value *yaml.Node) bool {
		i := slices.IndexFunc(work, func(s setting) bool { return s.key == key.Value })
		if i >= 0 { // its values may be secrets, which no fault of spec is to show
			d.decode(value, join(path, key.Value), work[i])
		}
		return i >= 0
	})
	got := entrySettings.Decode(doc, &e.settings, func(key, _ *spec.Node) bool {
		s, _ := spec.Named(key.Text)
		if s.Handled {
			d.faults.Add(Place{File: d.File, Line: key.Line}, join(path, key.Text), "unknown key; only a stored job has this, see jobs put and jobs apply; a job here has exec or http")
		}
		return s.Handled
	})
	for _, f := range got.Faults {
		d.faults.Add(Place{File: d.File, Line: f.Line}, join(path, f.Setting), "%s", f.Msg)
	}
	e.lines = got.Lines
}

// members adds the keys of a mapping to its node: of an entry, or of the section or labels name in
// it. other takes its own keys. The value of an unknown key stays closed: a secret may be in it.
func (d *decoder) members(node *spec.Node, n *yaml.Node, path, name string, other func(key, value *yaml.Node) bool) {
	s, _ := spec.Named(name)
	free := s.Kind == spec.Labels
	d.pairs(n, path, !free, func(key, value *yaml.Node) {
		k, v, under := TableNode(key), TableNode(value), strings.TrimPrefix(name+"."+key.Value, ".")
		_, known := spec.Named(under)
		switch {
		case key.Value == "<<" && !free:
			d.unknown(key, path, nil)
			return
		case other != nil && other(key, value):
			return
		case !free:
			k.Text = keyName(key.Value)
		}
		if free || known || spec.IsSection(under) {
			v = d.settingNode(value, join(path, k.Text), under)
		}
		if v != nil {
			node.Keys, node.Items = append(node.Keys, k), append(node.Items, v)
		}
	})
}

// settingNode reads the value of a setting or section, and notes its line; nil after a fault.
func (d *decoder) settingNode(n *yaml.Node, path, name string) *spec.Node {
	d.line(path, n.Line)
	if n.Kind == yaml.AliasNode {
		d.alias(n, path)
		return nil
	}
	if !d.plain(n, path, false) {
		return nil
	}
	node := TableNode(n)
	switch s, _ := spec.Named(name); {
	case node.Kind == spec.NodeMap && (s.Kind == spec.Labels || spec.IsSection(name)):
		d.members(node, n, path, name, nil)
	case node.Kind == spec.NodeList && (s.Kind == spec.Texts || s.Kind == spec.Names):
		for i, item := range n.Content {
			value := cmp.Or(d.settingNode(item, fmt.Sprintf("%s[%d]", path, i), ""), &spec.Node{Kind: spec.NodeText, Line: item.Line})
			node.Items = append(node.Items, value)
		}
	}
	return node
}

// TableNode is a YAML node for the table: its kind, its line, and a single value as it was written.
// The caller adds the contents.
func TableNode(n *yaml.Node) *spec.Node {
	node := &spec.Node{Line: n.Line, Text: n.Value}
	quoted := n.Style & (yaml.TaggedStyle | yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle)
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.SequenceNode:
		node.Kind = spec.NodeList
	case n.Kind == yaml.MappingNode:
		node.Kind = spec.NodeMap
	case tag == "!!null":
		node.Kind = spec.NodeNull
	case tag == "!!bool":
		node.Kind = spec.NodeBool
	case tag == "!!int", tag == "!!float", quoted == 0 && isNumber(n.Value): // or beyond float64: a text in YAML
		node.Kind = spec.NodeNumber
	default:
		node.Kind = spec.NodeText
	}
	return node
}
