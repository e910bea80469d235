// Package redislock keeps locks in one logical Redis: standalone, behind
// Sentinel, or a Cluster.
//
// # Keys
//
// A lock is at most four keys in one slot, spelt in keys.go:
//
//	{ns:lock:name}           string "token:owner", "-token:owner" once revoked;
//	                         expires after the TTL and the delay: the lock
//	{ns:lock:name}:token     hash t, r, o, h, q: the last token, the id of the server
//	                         that gave it, the last eight who released, who holds it,
//	                         until when somebody may stand in line
//	{ns:lock:name}:line      sorted set of those who wait, by when they came
//	{ns:lock:name}:waiters   hash: until when each counts as living, and where it is called
//
// The second outlives the first by 25 hours, so that tokens grow from one
// holder to the next, and then goes: nothing is left of a lock that nobody uses.
// The line and its waiters go when nobody has come forward for locking.Patience;
// a line has 1,000 places.
//
// # Scripts
//
// Acquire, renew and release are one script each, and each may be repeated
// after a lost reply: acquire gives the same owner the same token, release the
// same "released". Renewals of many locks go out as one pipeline.
//
// A hand-over is two calls: the release, which gives the lock to the first in
// line and publishes its name, and the acquire with which that one comes for it.
// The calls of one driver come over one connection, which it has only while
// somebody waits; on a Cluster over one for each master concerned, by sharded channels
// (Redis 7).
//
// # Tokens
//
// The token rule is redisconn.TokenLua. A token survives the expiry of its
// lock, a clock that steps back, a failover that lost writes, FLUSHALL and a
// restart without persistence, each alone. Two holders at once are possible
// only after Redis forgot what it had acknowledged; their tokens then differ.
package redislock
