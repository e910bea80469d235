// Package redisfence is a guard of package fence for data in Redis. It is a package of its own, so that a program
// with guards for SQL or HTTP does not link a Redis client.
//
// # Keys
//
//	ns:fence:{name}     the fence called name, for Check
//	{key}:key-fence     the fence of a data key, as FenceKey returns it
//	a{tag}b:fence       the fence of a data key with a hash tag
//
// Each is a string, the largest token in digits. The last two share a slot with the data, so one script compares
// and writes.
//
// # Not promised
//
// The guard is as durable as its data: a Redis that loses both accepts any token. For data elsewhere, keep the
// fence elsewhere. Fences do not expire without Config.Keep.
//
// A Redis that evicts keys may evict a fence alone, and then accepts a late write. Set maxmemory-policy noeviction:
// allkeys-* may evict any fence, volatile-* those with a Config.Keep.
package redisfence
