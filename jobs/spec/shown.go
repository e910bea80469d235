package spec

import "slices"

// DecodeShown is Decode for a document that Encode wrote with all settings, perhaps in a newer
// version: null stands for no value, and unknown keys and words are left out.
func (b *Binding[T]) DecodeShown(n *Node, job *T) Decoded {
	return b.Decode(b.known(n, ""), job, nil)
}

// known returns a section without the keys that have no value or that this version does not know,
// and without settings whose word is a new one.
func (b *Binding[T]) known(n *Node, section string) *Node {
	if n.Kind != NodeMap {
		return n
	}
	kept := &Node{Kind: n.Kind, Line: n.Line}
	for i, key := range n.Keys {
		value := n.Items[i]
		if section == "" && IsSection(key.Text) {
			value = b.known(value, key.Text)
		} else if !slices.ContainsFunc(b.rows, func(r row) bool { return r.Section() == section && r.Key() == key.Text && r.reads(value) }) {
			continue
		}
		kept.Keys, kept.Items = append(kept.Keys, key), append(kept.Items, value)
	}
	return kept
}

// reads reports whether a shown value is one of this version.
func (r *row) reads(value *Node) bool {
	return value.Kind != NodeNull && (r.Kind != Word || slices.Contains(r.Words, value.Text))
}
