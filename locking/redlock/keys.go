package redlock

// lockKeys returns the two keys of a lock at one master, and the master's own: lock, state and node of
// head.lua. Because of the braces, a name with a colon cannot have the keys of another.
func lockKeys(namespace, name string) []string {
	lock := "{" + namespace + keyInfix + name + "}"
	return []string{lock, lock + ":state", nodeKey(namespace)}
}

// nodeKey is the key for a master's own state.
func nodeKey(namespace string) string { return "{" + namespace + ":redlock}" }

// keyInfix separates a namespace from the name of a lock.
const keyInfix = ":redlock:"
