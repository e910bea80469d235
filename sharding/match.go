package sharding

// Matches reports whether have carries every label of want with the same value. An empty want
// matches everything.
func Matches(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
