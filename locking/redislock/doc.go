// Package redislock holds locks in one logical Redis: standalone, behind Sentinel, or a Cluster. New
// returns a [locking.Locker].
//
// # Keys
//
// A lock has at most four keys, in one slot; keys.go spells them:
//
//	{ns:lock:name}           string "token:owner", "-token:owner" once revoked: the lock;
//	                         expires after the TTL and the delay.
//	                         Of a semaphore or a read-write lock a hash, see share.lua: its kind, and
//	                         for each holder when its lease lapses, token, permits and text; expires
//	                         with the last lease, or waiter
//	{ns:lock:name}:token     hash t, r, o, h, q: the last token, the id of the server that gave it,
//	                         the last eight owners that released, the holder's text, until when
//	                         the queue may have a waiter
//	{ns:lock:name}:line      sorted set: the queue, owners by the time they came
//	{ns:lock:name}:waiters   hash: until when each waiter counts as alive, and its channel
//
// The second key lives 25 hours longer than the first, so that tokens increase from one holder to
// the next. Nothing remains of an unused lock after that. The queue and its waiters expire when no
// waiter has sent a request for locking.QueueTimeout. A queue has 1,000 places; more waiters poll.
// Holders whose lease has lapsed are dropped by the next grant.
//
// # Scripts
//
// Acquire, renew and release are one script each; a semaphore and a read-write lock have three of their own,
// for a name's holders in a hash. A read-write lock is a semaphore of locking.MaxPermits, of which a reader takes
// one and a writer all. A grant reads all holders of the name, so its time grows with them: as for a lock with a
// few, twice to three times as much with a hundred, and a millisecond or two of Redis' time with a thousand. Each may be repeated after a lost reply: acquire gives
// the same owner the same token, release the same answer. The renewals of many locks are one pipeline.
//
// A handover takes two calls: the release, which gives the lock to the first waiter and publishes its
// owner value, and the waiter's acquire. A driver has one connection for notifications, while there are
// waiters; on a Cluster one for each master concerned, with sharded channels (Redis 7).
//
// # Tokens
//
// The token rule is redisconn.TokenLua. Tokens increase across an expired lock, a clock that steps
// back, a failover that lost writes, FLUSHALL and a restart without persistence, each alone. Two
// holders at once are possible only after Redis lost acknowledged writes; their tokens then differ.
package redislock
