package schedtest

// opReassert is the call by which a node reports records that a new server may lack.
const opReassert = "reassert"

// refused reports whether a script did nothing, because the caller was mistaken about Redis.
func refused(words []string) bool {
	return len(words) == 2 && (words[0] == "clock" || words[0] == "server")
}

// reasserted counts the reports that a server gets after a loss.
func (c *cluster) reasserted(words []string) {
	for i := 0; i < len(words) && !refused(words); i += 2 {
		c.seen["asserted: "+words[i]]++
	}
}
