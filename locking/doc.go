// Package locking is the right to be the only one: locks and leases, whatever
// store they live in.
//
// # Words
//
// A lock is a name in a store. A lease is the right to it, for a time; it
// carries a fencing token, a number that only grows, by which a guard knows a
// stale holder. A driver is what a store can do (redislock and redlock have
// one). A Locker waits, retries and wraps over a driver; a Keeper keeps leases
// alive, for a Locker or for anything else that grants them.
//
// # Which call
//
//	Try       once                          Do         run a function under the lock
//	Acquire   wait, at most Options.Wait    Owner      who holds it, and how many wait
//	Extend    renew now                     Revoke     ask the holder to end
//	Release   give it back                  TakeOver   take it from the holder
//	Reenter   the same hold once more       ReleaseAll everything this locker holds
//
// # The life of a lease
//
//	Acquire ──granted──► held ──renewed, every ttl/3──► held     (Options.Fixed: by Extend only)
//	   │                  │ ├── Close, Release ─────────► released  (cause ErrReleased)
//	   │                  │ ├── the store says it is gone ► lost     (cause ErrLeaseLost)
//	   │                  │ └── the local deadline passes ► lost     (cause ErrLeaseLost)
//	   ├── held by another ► *HeldError
//	   └── nobody knows ───► ErrUnreachable
//
// Released and lost are final.
//
// # Told before taken
//
// A store gives a lease away only when it has lapsed there. The holder is told
// earlier, by a timer of its own that needs no network:
//
//	deadline = asked + ttl − margin − ttl/100
//
// asked is read from the monotonic clock before the request is sent, so the
// store counts ttl from a later moment; margin covers a step of the store's
// clock (use the largest skew that is tolerated, 1 s by default), and ttl/100
// clocks that run at different rates. At the deadline the lease's context is
// cancelled, whatever the network does. A renewal moves the deadline by the
// same formula, counted from before the renewal was sent.
//
// A process that does not execute cannot be told. One that was stopped, or
// whose machine was suspended, finds the deadline passed when it next looks:
// Valid and the context's Err compare the clocks themselves, and the clock that
// goes on during a suspension is compared too. What it still sends is a matter
// for the fencing token.
//
// # Under failures
//
//   - A failed renewal is retried every ttl/15 until the deadline; it is logged,
//     and a blip shorter than that changes nothing.
//   - A lost reply to an acquisition: it is asked again with the same owner and
//     answered with the same token. An acquirer that gives up without knowing
//     releases in the background.
//   - A lost reply to a release: it is asked again and answered with the same
//     "released".
//   - The store loses everything: the next renewal is answered "gone".
//
// # Waiting
//
// In a store with lines (locking.Waker) whoever waits gets a place, in the order
// of the store's clock, and the script that frees a lock gives it to the first in
// line and calls it. Nobody polls. Whoever waits comes forward by itself, too,
// once in a second or so: so a lost call costs a second and a half at most, and
// one who does not come forward for Patience has left. A lock that was given to
// somebody who does not come for it is kept for Patience. One whose holder was
// lost is free when its TTL and Options.Delay have passed; the first in line
// looks just then.
//
// # What is not promised
//
// A store that forgets what it acknowledged (a failover to an asynchronous
// replica) may give a lock to two holders until the first one's next renewal.
// Their tokens still differ, and order them.
package locking
