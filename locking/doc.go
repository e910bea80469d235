// Package locking holds locks and leases over a store: one holder at a time, a fencing token for
// each grant, and a context that ends before another holder can begin.
//
// # Words
//
// A lock is a name in a store. A lease is the right to the lock for a limited time. Each lease has
// a fencing token: a number that increases with every grant of the lock, so that a database can
// reject a write from an earlier holder. A [Driver] makes the calls to a store; packages redislock,
// redlock, zklock, etcdlock and pglock have one. A [Locker] adds waiting, retries and errors to a
// driver. A [Keeper] renews leases, for a Locker or for any other code that grants them.
//
// # Calls
//
//	Try       acquire, without waiting      Do         run a function under the lock
//	Acquire   wait, at most Options.Wait    Owner      the holder, the number of waiters
//	Extend    renew now                     Revoke     request that the holder ends
//	Release   give it back                  TakeOver   take it from the holder at once
//	Holders   all holders of a semaphore    AcquireAll several locks, all or none
//	Reenter   the same hold once more       ReleaseAll release everything this locker holds
//
// # The life of a lease
//
//	Acquire ──granted──► held ──renewed, every ttl/3──► held     (Options.Fixed: by Extend only)
//	   │                  │ ├── Close, Release ─────────► released  (cause ErrReleased)
//	   │                  │ ├── the store answers "gone" ► lost     (cause ErrLeaseLost)
//	   │                  │ └── the local deadline passes ► lost     (cause ErrLeaseLost)
//	   ├── held by another ► *HeldError
//	   └── no answer ──────► ErrUnreachable
//
// Released and lost are final.
//
// # Several holders
//
// With Options.Permits a name is a semaphore: so many hold it at once. With Options.Mode it is a
// read-write lock: readers share it, a writer has it alone. The rest is as for a lock: each holder
// has a lease, a local deadline and a token, and of two grants of one name the later one has the
// larger token. Waiters are served in the order in which they came, so a waiting writer is not
// overtaken by readers, and readers wait behind it.
//
// All contenders of a name use it in the same way: as a lock, with the same number of permits, or
// with Read and Write. A request of another kind is refused with an *InputError while the name has
// a holder or a waiter, because two numbers would mean two limits. The driver must be a [Sharer].
//
// The largest token is not the only valid one: with several holders at once, a guard that refuses smaller tokens
// refuses all but the latest grant. Give such holders guards of their own: one for each thing that they write.
//
// # The local deadline
//
// A store gives a lease to another holder only when the lease has lapsed there. The holder's context
// ends earlier, by a local timer that needs no network:
//
//	deadline = start + ttl − margin − ttl/100
//
// start is read from the monotonic clock before the request is sent, so the store counts ttl from a
// later moment. The margin covers a step of the store's clock: set it to the largest skew that you
// tolerate (1 s by default). ttl/100 covers clocks that run at different rates. A renewal moves the
// deadline by the same formula, with a start from before the renewal was sent.
//
// A stopped process cannot be notified. When a process was stopped, or its machine was suspended,
// Valid and the context's Err find the deadline passed, because both compare clocks, and one of the
// clocks goes on during a suspension. A write before that look carries an old fencing token.
//
// # Under failures
//
//   - A failed renewal is logged, and retried every ttl/15 until the deadline.
//   - After a lost reply to an acquire, the same owner repeats the request and gets the same token.
//     A caller that gives up without an answer releases in the background.
//   - After a lost reply to a release, the second one gets the same answer.
//   - When the store loses everything, the next renewal is answered "gone".
//
// # Waiting
//
// A store with queues (its driver is a [Notifier]) gives each waiter a place, in the order of the
// store's clock. The script that frees a lock grants it to the first waiter and notifies the
// waiter; no polling is needed. A waiter also sends a request about once a second, so a lost
// notification costs at most a second and a half. A waiter that sends no request for QueueTimeout
// loses its place, or the lock that was granted to it meanwhile. The lock of a lost holder is free
// after TTL and Options.Delay, and the first waiter sends its request at that moment.
//
// # Not promised
//
// A store that forgets what it acknowledged, as in a failover to an asynchronous replica, may give a
// lock to two holders until the first one's next renewal. Their tokens differ, and show which grant is
// the later one.
package locking
