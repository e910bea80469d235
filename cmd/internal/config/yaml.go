package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && strings.Contains("-0123456789", text[:1]) && json.Valid([]byte(text)) && strings.TrimSpace(text) == text
}

// YAML writes a value as YAML with the names of its JSON, in their order, and with its numbers
// unchanged.
func YAML(value any) ([]byte, error) {
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
