package schedtest

// opReassert is how a node tells a server what the one before it may not have told it.
const opReassert = "reassert"

// refused says whether a script did nothing, because the caller was mistaken about Redis.
func refused(words []string) bool {
	return len(words) == 2 && (words[0] == "clock" || words[0] == "server")
}

// reasserted counts what a server is told after it has lost something.
func (c *cluster) reasserted(words []string) {
	for i := 0; i < len(words) && !refused(words); i += 2 {
		c.seen["asserted: "+words[i]]++
	}
}
