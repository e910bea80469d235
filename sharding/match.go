package sharding

// Matches reports whether have carries every label of want with the same value.
// Nothing wanted matches everything.
func Matches(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Eligible returns the nodes that may be given new work with these labels: they
// match and are not draining. The result is a new slice in the order of nodes.
// Who holds the job at all is the caller's knowledge, see Roster.Sets.
func Eligible(nodes []Node, want map[string]string) []Node {
	var out []Node
	for _, n := range nodes {
		if !n.Draining && Matches(want, n.Labels) {
			out = append(out, n)
		}
	}
	return out
}
