//go:build unix

package redistest

// StartMasters starts n independent servers, for redlock, and stops them when the test ends.
func StartMasters(tb TB, n int) []*Server {
	tb.Helper()
	masters := make([]*Server, n)
	for i := range masters {
		masters[i] = Start(tb)
	}
	return masters
}
