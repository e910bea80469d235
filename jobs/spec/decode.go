package spec

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Fault is a fault of one setting in a document.
type Fault struct {
	// Setting is the path of the setting, or of one of its elements: "retry.max", "params[1]". ""
	// is the document.
	Setting string
	// Line counts from 1.
	Line int
	// Msg is the fault and its correction.
	Msg string
}

// Decoded is the result of reading a document.
type Decoded struct {
	// Lines are the lines of the settings in the document, settings with a fault included.
	Lines map[string]int
	// Faults are in the order of the document.
	Faults []Fault
}

func (d *Decoded) fault(setting string, n *Node, format string, args ...any) {
	d.Faults = append(d.Faults, Fault{setting, n.Line, fmt.Sprintf(format, args...)})
}

// Decode sets the settings of job from a document: a map with their names, and with a map for each
// section. A key that is no setting goes to other first, which may be nil, and is a fault when
// other returns false. Forms are checked, and not bounds: see Check.
func (b *Binding[T]) Decode(n *Node, job *T, other func(key, value *Node) bool) Decoded {
	d := Decoded{Lines: make(map[string]int)}
	if n.Kind != NodeMap {
		d.fault("", n, "want a section of settings, found %s", n.describe())
		return d
	}
	b.section(&d, n, "", reflect.ValueOf(job).Elem(), other)
	return d
}

func (b *Binding[T]) section(d *Decoded, n *Node, section string, v reflect.Value, other func(key, value *Node) bool) {
	prefix := section
	if prefix != "" {
		prefix += "."
	}
	for i, key := range n.Keys {
		value, name := n.Items[i], prefix+key.Text
		row := slices.IndexFunc(b.rows, func(r row) bool { return r.Name == name })
		switch {
		case row >= 0:
			d.Lines[name] = value.Line
			b.rows[row].decode(d, value, b.rows[row].in(v))
		case section == "" && IsSection(key.Text):
			d.Lines[name] = value.Line
			if value.Kind == NodeMap {
				b.section(d, value, key.Text, v, nil)
			} else if value.Kind != NodeNull { // a section of which every line is a comment
				d.fault(name, value, "want a section with %s, found %s", strings.Join(b.keys(key.Text), ", "), value.describe())
			}
		case other == nil || !other(key, value):
			d.fault(prefix+Clip(key.Text), key, "unknown key%s", b.meant(section, key.Text, value))
		}
	}
}

// keys returns the keys of a section.
func (b *Binding[T]) keys(section string) (keys []string) {
	for i := range b.rows {
		r := &b.rows[i]
		key := r.Key()
		if section == "" && r.Section() != "" {
			key = r.Section()
		}
		if (r.Section() == section || section == "") && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if section == "" {
		keys = append(keys, b.beside...)
	}
	return keys
}

// meant suggests the settings that an unknown key may stand for.
func (b *Binding[T]) meant(section, key string, value *Node) string {
	if plain, cut := strings.CutSuffix(key, "_ms"); cut && slices.Contains(b.keys(section), plain) {
		return fmt.Sprintf("; a duration has its unit: write %s: %s", plain, Milliseconds(value.Text))
	}
	hint := DidYouMean(key, b.keys(section))
	for _, near := range b.keys(section) {
		if hint == "" && section != "" && strings.HasSuffix(near, "_"+key) { // retry.timeout
			hint = "; did you mean " + near
		}
	}
	for i := range b.rows {
		r := &b.rows[i]
		if hint == "" && r.Key() == key && r.Section() != section {
			hint = "; did you mean " + r.Name
		}
	}
	if hint == "" {
		hint = "; known here: " + strings.Join(b.keys(section), ", ")
	}
	return hint
}

// Milliseconds writes a number of milliseconds as a duration; a value that is none as an example.
func Milliseconds(text string) string {
	d, err := ParseDuration(text + "ms")
	if err != nil {
		return "90s"
	}
	return FormatDuration(d)
}

// decode reads the value of a setting.
func (r *row) decode(d *Decoded, n *Node, f reflect.Value) {
	switch list := r.Kind == Texts || r.Kind == Names; {
	case r.Kind == JSON:
		var text bytes.Buffer
		if bad := n.write(&text, r.Name); bad != nil {
			d.Faults = append(d.Faults, *bad)
			return
		}
		f.SetBytes(text.Bytes())
	case n.Kind == NodeNull && (list || r.Kind == Labels): // a list of which every line is a comment
	case n.Kind == NodeNull:
		d.fault(r.Name, n, "has no value; write one, or leave the setting out")
	case list && n.Kind == NodeList:
		r.texts(d, n, f)
	case r.Kind == Labels && n.Kind == NodeMap:
		r.labels(d, n, f)
	case r.Kind == Word && !n.scalar():
		d.fault(r.Name, n, "want one of %s, found %s", strings.Join(r.Words, ", "), n.describe())
	case r.Kind == Texts, r.Kind == Labels, !n.scalar():
		d.fault(r.Name, n, "want %v, found %s", r.Kind, n.describe())
	case r.Kind == Count && n.Kind != NodeNumber:
		d.fault(r.Name, n, "want a whole number, found %s", n.describe())
	default:
		if err := r.set(f, n.Text); err != nil {
			d.fault(r.Name, n, "%v", err)
		}
	}
}

// texts reads a list. A text may be written as a number or as true: the digits count.
func (r *row) texts(d *Decoded, n *Node, f reflect.Value) {
	texts := make([]string, len(n.Items))
	for i, item := range n.Items {
		if texts[i] = item.Text; !item.scalar() {
			d.fault(fmt.Sprintf("%s[%d]", r.Name, i), item, "want a text, found %s", item.describe())
		}
	}
	f.Set(reflect.ValueOf(texts))
}

func (r *row) labels(d *Decoded, n *Node, f reflect.Value) {
	labels := make(map[string]string, len(n.Keys))
	for i, key := range n.Keys {
		if labels[key.Text] = n.Items[i].Text; !n.Items[i].scalar() {
			d.fault(r.Name+"."+Clip(key.Text), n.Items[i], "want a text, found %s", n.Items[i].describe())
		}
	}
	f.Set(reflect.ValueOf(labels))
}
