// Package locktest is the conformance kit of locking.Driver: what every store
// must do before it may grant locks, what a lock costs there, and whether its
// answers could be those of a lock at all.
//
// # For the author of a driver
//
// A driver's own test is a page that says how to connect. Store.Connect returns
// a new client with a Network of its own, which the cases cut, delay and rob of
// replies; redistest.Net is one for a Redis client, and another store needs a
// decorated connection like it. Then
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(tb testing.TB) locktest.Store { ... })
//	}
//
//	func TestHistories(t *testing.T) {
//		locktest.Histories(t, locktest.HistoryConfig{Seed: 1, Count: 20}, func(tb testing.TB) locktest.Store { ... })
//	}
//
//	func BenchmarkLock(b *testing.B) {
//		locktest.Benchmark(b, func(tb testing.TB) locktest.Store { ... })
//	}
//
// RunInBubble does what Run does in no time, for a store that lives inside this
// process; RunParallel runs the cases side by side, for stores that know nothing
// of each other.
//
// # What a case is
//
// The cases wait for events, never for a time. Those about lapsing leases take
// some real seconds, because it is the ttl that is being tested. A case that
// needs more than locking.Driver says so in Case.Needs; where the store lacks it,
// the case is left out, and Run logs its name and the reason.
//
// Two cases show a hint (Request.After) that lies ahead of the last token, and take tokens for microseconds of a clock: what lies ten
// minutes ahead is to be believed, and what lies two hours ahead is to be refused with a *locking.InputError about
// Options.After, for no guard can have seen it. A store whose tokens are counted has to draw that line in numbers of its own, at
// 6e8 and 7.2e9.
//
// A broken driver is the proof of a case: redislock's mutant test has at least
// one for each.
//
// # Histories
//
// Histories lets four clients do random things to one lock over networks that
// lose requests and replies, and searches one order of all calls in which a
// single lock with a ttl would have answered so. A call without an answer may
// have taken effect at any time, or never. Tokens are a part of it: that of each
// grant is larger than all before. A failure names its seed and tells the story;
// the same seed asks the same things at the same times again.
package locktest
