// Package redisfence is the guard of package fence for data in Redis. It stands
// apart so that a program that fences SQL or HTTP does not carry a Redis client.
//
// # Keys
//
//	ns:fence:{name}     of a fence that Check knows by its name
//	{key}:key-fence     beside a data key: what Beside returns
//	a{tag}b:fence       beside a data key that has a hash tag already
//
// Each is a string that holds the largest token in digits. The last two share a
// slot with the data, so one script compares and writes.
//
// # What is not promised
//
// The guard is as durable as its data: a Redis that forgets both accepts any
// token for data that is gone too. For data elsewhere, keep the fence elsewhere.
// Nothing expires unless Config.Keep says so.
//
// A Redis that evicts forgets fences without a word, one by one, and accepts a
// late write to data that is still there. Give it maxmemory-policy noeviction:
// allkeys-* may take any fence, volatile-* those with a Config.Keep.
package redisfence
