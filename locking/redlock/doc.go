// Package redlock holds locks in a majority of N independent Redis masters, so that a lock outlives the
// loss of fewer than half of them. New returns a [locking.Locker].
//
// Use it when one Redis with its replicas is not enough. Package redislock is faster, serves waiters in
// order, and needs fewer servers.
//
// # The first start
//
// New masters do not vote. An operator calls Bootstrap once, so that they do. While a majority votes,
// Bootstrap does nothing.
//
//	err := redlock.Bootstrap(ctx, clients, cfg)
//	locker, err := redlock.New(clients, cfg)
//
// # Acquire
//
// Phase 1 goes to all masters at once. A master where the lock is free, or held by the same owner, sets it
// for its ttl and promises a token: the largest that it ever gave for this lock plus one, or the client's
// clock in microseconds if that is larger. The token of the acquisition is the largest that a majority
// promised. Phase 2 writes this token to each of those masters, unless the lock there has another owner,
// a larger token, or a later attempt of the same owner. The lock is granted when a majority has it and
//
//	validity = ttl − elapsed − ttl/100 − 2 ms > 0
//
// with elapsed counted from before the first request, as the lease's own deadline is. When a majority has
// promised the same token, as it mostly does because of the client's clock, phase 2 would change nothing
// and is left out: one round trip.
//
// Acquire waits for no master longer than Config.MasterTimeout, and for none after a majority has answered.
//
// # Why tokens increase
//
// Let A and then B be granted the lock. The majorities that accepted their tokens share a master. B's hold
// there began after A's token was written, so the promise to B is larger, and this master accepts no token
// below its promise. This needs no clock. A clock is needed so that there is one holder at a time.
//
// # A master that lost its state
//
// Each master keeps a marker with its server id. When the marker is missing or has another id, the master
// may have lost what it promised: it grants nothing and does not count. Locks that it still has can be
// renewed and released.
//
// It votes again when the loss has been known for 1.1 times the longest MaxTTL and a second, so that no
// earlier grant is still held, and when another acquisition has succeeded without it, whose masters know
// the largest token. Clients do both by themselves. So restart masters one at a time, some minutes apart.
//
// # Under failures, with N masters and a majority of N/2+1
//
//	fewer than half are dead, hung or cut off   nothing: the others answer
//	half or more do not answer                  ErrUnreachable after MasterTimeout; a holder's context ends at
//	                                            its local deadline
//	a reply to Acquire is lost                  the same owner asks again and gets the same promises; a lock
//	                                            granted already is renewed, with its token
//	a reply to Release is lost                  asked again, the same answer
//	a release misses a master                   repeated there twice; then the lock lapses there
//	contenders split the masters                ErrHeld for those who see a majority held, with the owner
//	                                            "several contenders"; all release what they got
//	a lock is missing at some masters           the next renewal sets it there
//	a master restarts, or is emptied            it does not vote until it is repaired
//	half or more restart or are emptied         ErrUnreachable until an operator calls Bootstrap, again when the
//	                                            wait is over; then tokens go on a minute ahead of the median of
//	                                            the clocks, or of the largest known token
//	all are emptied                             the same, but Bootstrap takes it for a first start and does not
//	                                            wait; the operator waits for MaxTTL
//	a client's clock is wrong                   no fast path; tokens of a clock far ahead stop at an hour
//
// # Not promised
//
// One holder at a time is as good as the clocks: two can hold a lock when the clocks of a majority of
// masters jump ahead by a ttl, or the clock of a master that waits to vote again. Their tokens differ, so a
// guard refuses the older one. Tokens may decrease only when a majority loses its state, Bootstrap is
// called, and the clocks are behind by more than a minute.
//
// Owner asks the masters one by one. While a lock changes hands, or has another token at too few masters,
// it returns ErrUnreachable. During an Acquire it may show a token that is smaller than the granted one. A
// Release that is repeated after an Acquire of the same owner, or after a contender's release at a few
// masters, may return ErrLost: each master keeps only the last owner who released there.
//
// Where a service forbids INFO in scripts, a restart is not noticed, only an empty master. There is no
// queue: waiters poll, with jitter, in no order. A Redis Cluster cannot be a master; one that Sentinels
// watch can.
package redlock
