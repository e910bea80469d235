//go:build unix

package redistest

// StartMasters starts n servers that know nothing of each other, as a lock over
// a majority of masters wants them, and ends them when the test does.
func StartMasters(tb TB, n int) []*Server {
	tb.Helper()
	masters := make([]*Server, n)
	for i := range masters {
		masters[i] = Start(tb)
	}
	return masters
}
