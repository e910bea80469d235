// Package redislock keeps locks in one logical Redis: standalone, behind
// Sentinel, or a Cluster.
//
// # Keys
//
// A lock is two keys in one slot, spelt in keys.go:
//
//	{ns:lock:name}         string "token:owner", expires after the TTL: the lock
//	{ns:lock:name}:token   hash t, r, o: the last token, the run_id of the server
//	                       that gave it, the last owner who released
//
// The second outlives the first by 24 hours, so that tokens grow from one
// holder to the next, and then goes: nothing is left of a lock that nobody uses.
//
// # Scripts
//
// Acquire, renew and release are one script each, and each may be repeated
// after a lost reply: acquire gives the same owner the same token and the time
// left, release the same "released". Renewals of many locks go out as one
// pipeline.
//
// # Tokens
//
// The token rule is redisconn.TokenLua. A token survives the expiry of its
// lock, a clock that steps back, a failover that lost writes, FLUSHALL and a
// restart without persistence, each alone. Two holders at once are possible
// only after Redis forgot what it had acknowledged; their tokens then differ.
package redislock
