package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// read makes nodes for the table of a value in YAML, with its aliases and merges resolved. path
// names the value in the job; "" is the job. The caller has decoded the value once, which bounds
// its aliases. A date of YAML is a text, as it is written.
func (j *fileJob) read(n *yaml.Node, path string) *spec.Node {
	n = aliased(n)
	node := config.TableNode(n)
	for i := 0; n.Kind == yaml.SequenceNode && i < len(n.Content); i++ {
		node.Items = append(node.Items, j.read(n.Content[i], fmt.Sprintf("%s[%d]", path, i)))
	}
	if n.Kind != yaml.MappingNode {
		return node
	}
	for _, p := range pairsOf(n) {
		if tag := p.key.ShortTag(); tag != "!!str" && tag != "!!timestamp" {
			j.faults = append(j.faults, spec.Fault{Setting: path, Line: p.key.Line, Msg: "the key " + print.Quote(p.key.Value) + " is no text; write it in quotes"})
			continue
		}
		value := j.read(p.value, strings.TrimPrefix(path+"."+p.key.Value, "."))
		if s, _ := spec.Named(p.key.Value); path == "" && s.Kind == spec.Instant {
			value.Text = instantText(aliased(p.value))
		}
		node.Keys, node.Items = append(node.Keys, config.TableNode(p.key)), append(node.Items, value)
	}
	return node
}

// aliased is the node that an alias stands for, and any other node itself.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// instantText returns the instant of a date: YAML allows dates without a time or a zone.
func instantText(n *yaml.Node) string {
	var at time.Time
	if n.ShortTag() == "!!timestamp" && n.Decode(&at) == nil {
		return at.Format(time.RFC3339Nano)
	}
	return n.Value
}

// yamlPair is a key of a mapping with its value.
type yamlPair struct{ key, value *yaml.Node }

// pairsOf returns the pairs of a mapping, and the pairs that it merges (<<), over which its own
// win.
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
