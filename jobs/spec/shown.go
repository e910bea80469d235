package spec

// DecodeShown is Decode for a document that Encode wrote with all settings: null stands for no
// value there.
func (b *Binding[T]) DecodeShown(n *Node, job *T, other func(key, value *Node) bool) Decoded {
	return b.Decode(b.withoutNull(n, ""), job, other)
}

// withoutNull returns a section without the keys whose value is null.
func (b *Binding[T]) withoutNull(n *Node, section string) *Node {
	if n.Kind != NodeMap {
		return n
	}
	kept := &Node{Kind: n.Kind, Line: n.Line}
	for i, key := range n.Keys {
		value := n.Items[i]
		if value.Kind == NodeNull {
			continue
		}
		if section == "" && IsSection(key.Text) {
			value = b.withoutNull(value, key.Text)
		}
		kept.Keys, kept.Items = append(kept.Keys, key), append(kept.Items, value)
	}
	return kept
}
