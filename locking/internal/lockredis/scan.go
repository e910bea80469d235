package lockredis

// Scan copies a script's reply into to, each an *int64 or a *string. It reports whether the reply has that many values of
// these types.
func Scan(reply []any, to ...any) bool {
	if len(reply) != len(to) {
		return false
	}
	for i := range to {
		var ok bool
		switch p := to[i].(type) {
		case *int64:
			*p, ok = reply[i].(int64)
		case *string:
			*p, ok = reply[i].(string)
		}
		if !ok {
			return false
		}
	}
	return true
}
