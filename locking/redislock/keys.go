package redislock

// lockKeys returns the four keys of a lock. The braces put all into one slot of
// a Cluster, whatever the name contains: the slot is computed from what stands
// between the first '{' and the first '}', and all keys begin alike.
func lockKeys(namespace, name string) []string {
	lock := lockPrefix(namespace) + name + "}"
	return []string{lock, lock + ":token", lock + ":line", lock + ":waiters"}
}

// lockPrefix is how the keys of a namespace's locks begin.
func lockPrefix(namespace string) string { return "{" + namespace + between }

// between stands between a namespace and the name of a lock.
const between = ":lock:"

// callChannel is where a process listens that waits for locks.
func callChannel(namespace, process string) string {
	return namespace + ":lock-call:" + process
}

// shardChannel is the same on a Cluster, where a script may only publish in the
// slot of its keys: so there is one channel for each lock.
func shardChannel(namespace, name, process string) string {
	return lockKeys(namespace, name)[0] + ":call:" + process
}
