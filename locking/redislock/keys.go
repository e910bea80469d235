package redislock

// lockKeys returns the four keys of a lock. They share a slot of a Cluster, whatever the name contains: the
// text between the first '{' and the first '}' decides, and all four begin alike.
func lockKeys(namespace, name string) []string {
	lock := lockPrefix(namespace) + name + "}"
	return []string{lock, lock + ":token", lock + ":line", lock + ":waiters"}
}

// lockPrefix begins the keys of a namespace's locks.
func lockPrefix(namespace string) string { return "{" + namespace + keyInfix }

// keyInfix separates a namespace from the name of a lock.
const keyInfix = ":lock:"

// processChannel is the channel for the notifications of one process.
func processChannel(namespace, process string) string {
	return namespace + ":lock-call:" + process
}

// shardChannel is the same on a Cluster, for one lock: there a script may publish only in the slot of its
// keys.
func shardChannel(namespace, name, process string) string {
	return lockKeys(namespace, name)[0] + ":call:" + process
}
