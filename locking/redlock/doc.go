// Package redlock keeps locks in a majority of N independent Redis masters, so
// that a lock outlives the loss of any few of them. Use it when one Redis with
// its replicas is not enough; redislock is faster, has lines for those who wait,
// and is less to run.
//
// # The first start
//
// Masters that are new do not vote. Bootstrap lets them; an operator calls it
// once. While a majority votes it does nothing.
//
//	err := redlock.Bootstrap(ctx, clients, cfg)
//	locker, err := redlock.New(clients, cfg)
//
// # Acquire
//
// Phase 1 goes to all masters at once. Each that is free, or ours, takes the
// lock for its ttl and promises a token: one more than it has ever given for
// this lock, or the client's clock in microseconds, if that is more. The token
// is the largest that a majority promised. Phase 2 writes it back to those
// masters where the lock is still ours, whose own promise is not larger and which
// have not heard of a later attempt of the same owner. The lock is granted when a
// majority has it and
//
//	validity = ttl − elapsed − ttl/100 − 2 ms > 0
//
// is left, elapsed being counted from before the first request, as the lease's
// own deadline is. When a majority has promised one and the same token, which
// the client's clock mostly brings about, it stores it already and phase 2 falls
// away: one round trip.
//
// No master is waited for longer than Config.MasterTimeout, whatever its client
// does, and nobody is waited for once a majority has answered.
//
// # Why tokens grow
//
// Let A and then B be granted the lock. The majorities that accepted their
// tokens share a master. B's hold there began after A's token was written, so
// what B was promised there is larger, and a larger promise is the smallest
// token that this master accepts. No clock is needed for that; it is needed for
// there to be one holder at a time.
//
// # A master that lost its state
//
// Each master keeps a marker with its server id. When it is missing or from another
// server id, the master has forgotten, or may have, what it promised: it grants
// nothing and does not count. What it still holds can be renewed and released.
// It votes again when it has been known for 1.1 times the longest MaxTTL and a
// second, so that nothing from before is still held, and a client has been
// granted a lock by the others, who then say which tokens it may not give again.
// Clients do that by themselves. So restart masters one at a time, and some
// minutes apart.
//
// # Under failures, with N masters and a majority of N/2+1
//
//	fewer than half are dead, hung or cut off   nothing: answers come from the rest
//	half or more are silent                     ErrUnreachable after MasterTimeout; a holder is told at its deadline
//	a reply to Acquire is lost                  asked again, the same owner gets what was promised it; what it
//	                                            was granted already is renewed, with its token
//	a reply to Release is lost                  asked again, the same "released"
//	a release misses a master                   told again twice, then it lapses there
//	contenders split the masters                ErrHeld for those who see a majority held, by Contenders when no
//	                                            majority names one; all take back what they got
//	a lock is missing at some masters           put in place there with the next renewal
//	a master restarts, or is emptied            it does not vote until it is repaired
//	half or more restart or are emptied         ErrUnreachable until an operator calls Bootstrap, again when the
//	                                            wait is over; then tokens go on a minute ahead of the median of
//	                                            the clocks, or of the largest token that is known
//	all are emptied                             the same, but Bootstrap cannot tell it from a first start and waits
//	                                            for nothing; the operator waits for MaxTTL
//	a client's clock is wrong                   no fast path; tokens of a clock far ahead stop at an hour
//
// # What is not promised
//
// One holder at a time is as good as the clocks: if those of a majority of
// masters jump ahead by a ttl, or a master's jumps while it waits to vote again,
// two can hold a lock. Their tokens differ and order them: a guard refuses the
// older. Tokens may go back only when a majority loses its state, Bootstrap is
// called and the clocks are behind by more than a minute.
//
// Owner asks the masters one by one: while a lock changes hands, or has another
// token at each of too few masters, it answers ErrUnreachable. What it shows while
// an Acquire is under way may be a token that the grant then exceeds. An owner that
// asks again after a Release without an answer may be told by its next Release that
// the lock was lost; so may one whose Release is repeated after a contender has given
// back what it had at a few masters: each remembers the last who gave back there.
//
// Where a service forbids INFO in scripts a restart is not seen, only an empty
// master. There is no line: those who wait ask again, with jitter, in no order.
// A Redis Cluster cannot be a master, a set that Sentinels watch can.
package redlock
