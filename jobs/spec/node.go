package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// NodeKind is the kind of a document's node.
type NodeKind uint8

// The kinds of nodes.
const (
	NodeNull   NodeKind = iota // nothing, or null
	NodeText                   // a text
	NodeNumber                 // a number
	NodeBool                   // true or false
	NodeList                   // a list
	NodeMap                    // an object or mapping
)

var nodeWords = [...]string{NodeNull: "nothing", NodeText: "a text", NodeNumber: "a number", NodeBool: "true or false", NodeList: "a list", NodeMap: "a section"}

// Node is a value of a document in JSON or YAML, with its place.
type Node struct {
	Kind NodeKind
	// Line counts from 1.
	Line int
	// Text is a text, or a number or truth value as it was written.
	Text string
	// Items are the elements of a list, and the values of a map.
	Items []*Node
	// Keys are the keys of a map, parallel to Items. Each key occurs once.
	Keys []*Node
}

// Get returns the value of a key of a map; nil without.
func (n *Node) Get(key string) *Node {
	for i, k := range n.Keys {
		if k.Text == key {
			return n.Items[i]
		}
	}
	return nil
}

// scalar reports whether a node is a single value.
func (n *Node) scalar() bool {
	return n.Kind == NodeText || n.Kind == NodeNumber || n.Kind == NodeBool
}

// describe names the kind of a node, for a fault.
func (n *Node) describe() string {
	switch n.Kind {
	case NodeText:
		return fmt.Sprintf("the text %q", Clip(n.Text))
	case NodeNumber, NodeBool:
		return Clip(n.Text)
	default:
		return nodeWords[n.Kind]
	}
}

// maxDepth bounds the nesting of a document's lists and objects.
const maxDepth = 100

// ParseJSON parses one JSON value. The error names the line.
func ParseJSON(text []byte) (*Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	r := &jsonReader{d: d, text: text, line: 1}
	n, err := r.value(0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the value; write one")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.at(d.InputOffset()), plainJSON(err))
	}
	return n, nil
}

// plainJSON takes the names of Go away from an error of encoding/json.
func plainJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// jsonReader reads values and counts lines.
type jsonReader struct {
	d         *json.Decoder
	text      []byte
	line, end int // the line of the offset end
}

// at returns the line of an offset, which does not go back.
func (r *jsonReader) at(offset int64) int {
	if to := min(int(offset), len(r.text)); to > r.end {
		r.line, r.end = r.line+bytes.Count(r.text[r.end:to], []byte("\n")), to
	}
	return r.line
}

func (r *jsonReader) value(depth int) (*Node, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	n := &Node{Line: r.at(r.d.InputOffset())}
	switch v := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("more than %d lists and objects stand in each other", maxDepth)
		}
		if v == '{' {
			n.Kind = NodeMap
			return n, r.members(n, depth)
		}
		n.Kind = NodeList
		for r.d.More() {
			item, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
		_, err = r.d.Token() // the end of the list
	case string:
		n.Kind, n.Text = NodeText, v
	case json.Number:
		n.Kind, n.Text = NodeNumber, v.String()
	case bool:
		n.Kind, n.Text = NodeBool, fmt.Sprint(v)
	}
	return n, err
}

func (r *jsonReader) members(n *Node, depth int) error {
	seen := make(map[string]bool)
	for r.d.More() {
		key, err := r.value(depth)
		if err != nil {
			return err
		}
		value, err := r.value(depth + 1)
		switch {
		case err != nil:
			return err
		case seen[key.Text]:
			return fmt.Errorf("the key %q stands there twice; keep one", Clip(key.Text))
		}
		seen[key.Text] = true
		n.Keys, n.Items = append(n.Keys, key), append(n.Items, value)
	}
	_, err := r.d.Token() // the end of the object
	return err
}

// JSON returns the node as JSON, with the keys in their order and the digits of numbers as they
// were written.
func (n *Node) JSON() ([]byte, error) {
	var out bytes.Buffer
	if bad := n.write(&out, ""); bad != nil {
		return nil, fmt.Errorf("line %d: %s", bad.Line, bad.Msg)
	}
	return out.Bytes(), nil
}

// write appends the JSON. path is the place below the node that is written, for the fault.
func (n *Node) write(out *bytes.Buffer, path string) *Fault {
	switch n.Kind {
	case NodeNull:
		out.WriteString("null")
	case NodeText:
		quoted, _ := json.Marshal(n.Text) // a string always has a JSON form
		out.Write(quoted)
	case NodeBool:
		out.WriteString(strings.ToLower(n.Text)) // YAML has True too
	case NodeNumber:
		if !json.Valid([]byte(n.Text)) {
			return &Fault{path, n.Line, Clip(n.Text) + " is not a number as JSON has them; write its decimal digits, or write it in quotes for a text"}
		}
		out.WriteString(n.Text)
	case NodeList:
		return n.writeAll(out, path, '[', ']')
	case NodeMap:
		return n.writeAll(out, path, '{', '}')
	}
	return nil
}

func (n *Node) writeAll(out *bytes.Buffer, path string, open, end byte) *Fault {
	out.WriteByte(open)
	for i, item := range n.Items {
		if i > 0 {
			out.WriteByte(',')
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if n.Kind == NodeMap {
			at = path + "." + Clip(n.Keys[i].Text)
			quoted, _ := json.Marshal(n.Keys[i].Text)
			out.Write(append(quoted, ':'))
		}
		if bad := item.write(out, at); bad != nil {
			return bad
		}
	}
	out.WriteByte(end)
	return nil
}
