package redislock

// lockKeys returns the two keys of a lock. The braces put both into one slot of
// a Cluster, whatever the name contains: the slot is computed from what stands
// between the first '{' and the first '}', and both keys begin alike.
func lockKeys(namespace, name string) []string {
	lock := "{" + namespace + ":lock:" + name + "}"
	return []string{lock, lock + ":token"}
}
