package redlock

// lockKeys returns the keys of a lock at one master, and the node's own: what
// head.lua calls lock, state and node. The braces keep a name that contains a
// colon from running into another's keys.
func lockKeys(namespace, name string) []string {
	lock := "{" + namespace + between + name + "}"
	return []string{lock, lock + ":state", nodeKey(namespace)}
}

// nodeKey is where a master keeps what it knows of itself.
func nodeKey(namespace string) string { return "{" + namespace + ":redlock}" }

// between stands between a namespace and the name of a lock.
const between = ":redlock:"
