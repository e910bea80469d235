// Package redlock holds locks in a majority of N independent Redis masters, so that a lock outlives the
// loss of fewer than half of them. New returns a [locking.Locker].
//
// Use it when one Redis with its replicas is not enough. Package redislock is faster, serves waiters in
// order, and needs fewer servers.
//
// # First use
//
// Start an odd number of Redis servers, at least three, on different machines, and call Bootstrap once:
//
//	err := redlock.Bootstrap(ctx, clients, cfg) // or: escapement locks bootstrap
//	locker, err := redlock.New(clients, cfg)
//
// A new master grants no locks until Bootstrap is called, because it cannot distinguish a first
// start from a loss of its data. Without Bootstrap each Acquire returns ErrUnreachable with this
// reason. Bootstrap may be called at each start of a program: once a majority of the masters grants
// locks, it does nothing.
//
// # Acquire
//
// The request goes to all masters at once. A master where the lock is free, or held by the same
// owner, sets the lock for its ttl and promises a token: the largest token that the master ever
// gave for this lock plus one, or the client's clock in microseconds if that is larger. The lock is
// granted when a majority has promised the same token and
//
//	validity = ttl − elapsed − ttl/100 − 2 ms > 0
//
// with elapsed counted from before the first request, as for the lease's own deadline. When a
// majority has promised, but not the same token, each of these masters gets one more request, for a
// token that is at least the largest promise. Mostly the client's clock is the largest, and one
// round trip is enough.
//
// Acquire waits for no master longer than Config.MasterTimeout, and for none after a majority has answered.
//
// # Why tokens increase
//
// Let A and then B be granted the lock. The majorities that promised their tokens share a master.
// B's hold there began after A's token was stored, and this master's promises to B are larger than
// all its earlier ones. This needs no clock. A clock is needed so that there is one holder at a
// time.
//
// # A master that lost its data
//
// Each master keeps a marker with its server id. When the marker is missing or has another id, the
// master was emptied or restarted, and may have lost its promises: it does not vote. Locks that it
// still has can be renewed and released.
//
// The master votes again by itself when the loss has been known for 1.1 times the longest MaxTTL
// and a second: no lock from before is held any more. A client whose Acquire finds such a master
// then reads the state of the other masters, and stores their largest token there. A majority must
// vote and answer: one of these masters has any token that was granted. So masters may lose their
// data one after another, each after the previous one votes again, and tokens still increase
// without a clock. Restart masters one at a time, some minutes apart.
//
// # Under failures, with N masters and a majority of N/2+1
//
//	fewer than half are dead, hung or cut off   nothing: the other masters answer
//	half or more do not answer                  ErrUnreachable after MasterTimeout; a holder's context ends at
//	                                            its local deadline
//	a reply to Acquire is lost                  the owner's next request gets the same promises; a lock
//	                                            granted already is renewed, with its token
//	a reply to Release is lost                  the next request gets the same answer
//	a release misses a master                   repeated there twice; then the lock lapses there
//	contenders split the masters                ErrHeld for each that sees a majority held, with the owner
//	                                            "several contenders"; all release their promises
//	a lock is missing at some masters           the next renewal sets it there
//	a lock has another token at some masters    it lapses there, and a later renewal sets it
//	a master restarts, or is emptied            it does not vote until its earlier locks have lapsed
//	half or more restart or are emptied         ErrUnreachable until an operator calls Bootstrap, again when the
//	                                            wait is over; then tokens go on a minute ahead of the median of
//	                                            the clocks, or of the largest known token
//	all are emptied                             the same, but Bootstrap takes it for a first start and does not
//	                                            wait; the operator waits for MaxTTL
//	a client's clock is wrong                   two round trips; tokens of a clock far ahead stop at an hour
//
// # Not promised
//
// One holder at a time is as good as the clocks: two can hold a lock when the clocks of a majority of
// masters jump ahead by a ttl, or the clock of a master that waits to vote again. Their tokens differ, so a
// guard refuses the older one. Tokens may decrease only when a majority loses its data at the same time,
// Bootstrap is called, and the clocks are behind by more than a minute.
//
// Owner reads the masters one by one. While a lock changes hands, or has another token at too few
// masters, Owner returns ErrUnreachable. During an Acquire it may return a token that is smaller
// than the granted one. A Release that is repeated after an Acquire of the same owner, or after a
// contender's release at a few masters, may return ErrLost: each master keeps only the last owner
// who released there.
//
// Release returns when a majority has answered. An Acquire that follows at once may find the lock still held
// at another master; with a master down at that moment it may return ErrUnreachable, and a Locker repeats it.
//
// Where a service forbids INFO in scripts, a restart is not noticed, only an empty master. There is
// no queue: waiters poll, with jitter, in no order. A Redis Cluster cannot be a master; a server
// that Sentinels watch can.
package redlock
