// Package locktest is the conformance kit of locking.Driver: what every store
// must do before it may grant locks. A driver's own test is a page that says how
// to connect, and calls Run:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(tb testing.TB) locktest.Store { ... })
//	}
//
// The cases wait for events, never for a time. Those about lapsing leases take
// a few real seconds; with RunInBubble, for a store that lives inside this
// process, they take none.
package locktest
