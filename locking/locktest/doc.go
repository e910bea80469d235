// Package locktest is the conformance kit for a locking.Driver. It has cases that every driver must pass, a
// benchmark, and random histories that are checked against a model of a lock.
//
// # For the author of a driver
//
// A driver's own test only has to connect. Store.Connect returns a new client with a Network of its
// own, which the cases cut and delay, and whose replies they lose. redistest.Net is the Network of
// a Redis client; another store needs a similar wrapper of its connection. Then
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
// RunInBubble runs the cases in virtual time, for a store inside this process. RunParallel runs several cases at a
// time, for independent stores.
//
// # Cases
//
// The cases wait for events. The cases of lapsed leases take some real seconds. A case may need
// more than locking.Driver: Store.Forget, a locking.Notifier, or a locking.Sharer. Without it the
// case is left out, and Run logs its name and the reason.
//
// A store whose leases have whole seconds, that notices a lapse late, or whose acquire is several requests sets
// Store.HistoryTTL, Store.Late and Store.Trips.
//
// Two cases set Request.After above the last token, and take tokens for microseconds of a clock: a hint ten minutes
// ahead must be accepted, and one two hours ahead refused with a *locking.InputError for Options.After, because no
// guard can have seen such a token. A store whose tokens are counters needs the same limits as numbers, 6e8 and
// 7.2e9.
//
// # Histories
//
// Histories lets four clients make random calls for one lock, over networks that lose requests and replies. It
// searches an order of all calls in which a single lock with a ttl would have given these answers. A call without an
// answer may have taken effect at any time, or never. The token of each grant must be larger than all before. A
// failure prints its seed and all calls; the same seed makes the same calls at the same times. With
// HistoryConfig.Share the calls are for a semaphore or a read-write lock, and the model has several holds at once.
package locktest
