package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// lineError is a fault at a line of a file.
type lineError struct {
	line int
	err  error
}

func (e lineError) Error() string { return e.err.Error() }
func (e lineError) Unwrap() error { return e.err }

// writeNode writes a YAML node as JSON, with the keys in their order and numbers as they are written. path names the node in the error,
// which is a lineError. Dates are texts, as they are written. The caller has decoded the node once, which bounds its aliases.
func writeNode(b *bytes.Buffer, n *yaml.Node, path string) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeNode(b, n.Content[0], path)
	case yaml.AliasNode:
		return writeNode(b, n.Alias, path)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeNode(b, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.MappingNode:
		b.WriteByte('{')
		for i, pair := range pairsOf(n) {
			if i > 0 {
				b.WriteByte(',')
			}
			if tag := pair.key.ShortTag(); tag != "!!str" && tag != "!!timestamp" {
				return lineError{pair.key.Line, fmt.Errorf("%s: the key %s is no text; write it in quotes", path, quote(pair.key.Value))}
			}
			writeText(b, pair.key.Value)
			b.WriteByte(':')
			if err := writeNode(b, pair.value, strings.TrimPrefix(path+"."+pair.key.Value, ".")); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	default:
		return scalarJSON(b, n, path)
	}
}

// yamlPair is a key of a mapping with its value.
type yamlPair struct{ key, value *yaml.Node }

// pairsOf are the pairs of a mapping, and those that it merges (<<), over which its own win.
func pairsOf(n *yaml.Node) (pairs []yamlPair) {
	add := func(p yamlPair) {
		if !slices.ContainsFunc(pairs, func(has yamlPair) bool { return has.key.Value == p.key.Value }) {
			pairs = append(pairs, p)
		}
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key, value := n.Content[i], n.Content[i+1]; key.ShortTag() == "!!merge" {
			merged = append(merged, value)
		} else {
			pairs = append(pairs, yamlPair{key, value}) // which has no key twice, or yaml would have refused it
		}
	}
	for ; len(merged) > 0; merged = merged[1:] {
		switch from := merged[0]; from.Kind {
		case yaml.AliasNode:
			merged = append(merged, from.Alias)
		case yaml.SequenceNode:
			merged = append(merged, from.Content...)
		default:
			for _, p := range pairsOf(from) {
				add(p)
			}
		}
	}
	return pairs
}

// scalarJSON writes one value. A number has to be one of JSON, so that its digits are those of the file.
func scalarJSON(b *bytes.Buffer, n *yaml.Node, path string) error {
	said := n.Style & (yaml.TaggedStyle | yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle)
	tag := n.ShortTag()
	switch number := isNumber(n.Value); {
	case tag == "!!null":
		b.WriteString("null")
	case tag == "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case number && said == 0, number && (tag == "!!int" || tag == "!!float"):
		b.WriteString(n.Value) // also one that no float64 holds, which YAML takes for a text
	case tag == "!!int" || tag == "!!float":
		return lineError{n.Line, fmt.Errorf("%s: %s is not a number as JSON has them; write its decimal digits, or write it in quotes for a text", path, n.Value)}
	default:
		writeText(b, n.Value)
	}
	return nil
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && strings.Contains("-0123456789", text[:1]) && json.Valid([]byte(text)) && strings.TrimSpace(text) == text
}

// writeText writes a text as JSON.
func writeText(b *bytes.Buffer, text string) {
	quoted, _ := json.Marshal(text) // a string always has a JSON form
	b.Write(quoted)
}

// yamlOf writes a value as YAML with the names of its JSON, in their order, and with its numbers as they are written.
func yamlOf(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(node)
}

// yamlNode reads the next value of a decoder. At the end of a list or object the error is io.EOF.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch value := token.(type) {
	case json.Delim:
		if value == ']' || value == '}' {
			return nil, io.EOF
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if value == '{' {
			n.Kind = yaml.MappingNode
		}
		for {
			item, err := yamlNode(d)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
		if isNumber(value) || strings.TrimSpace(value) != value || oldBool.MatchString(value) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: value.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(value)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// instantsOfJob makes instants of the dates in the bounds of a job, which YAML lets stand without a time or a zone.
func instantsOfJob(job *yaml.Node) {
	if job.Kind != yaml.MappingNode {
		return
	}
	for _, p := range pairsOf(job) {
		var at time.Time
		if (p.key.Value == "start_at" || p.key.Value == "end_at") && p.value.ShortTag() == "!!timestamp" && p.value.Decode(&at) == nil {
			p.value.Value = at.Format(time.RFC3339Nano)
		}
	}
}
