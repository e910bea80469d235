// Package sharding answers three questions: which nodes are there, which of
// them goes first for a key, or for each of many keys, and which part of the data is
// a shard's.
//
// # Assignment
//
// [Rank] and [Owner] are weighted rendezvous hashing, and nothing but a
// function of their arguments. Every node gets a score for the key,
//
//	u     = the hash of (key, node ID), spread evenly over the open interval (0, 1)
//	score = -weight / ln(u)
//
// and the highest score goes first. Nobody keeps a table and nobody is told
// anything: nodes that see the same roster come to the same answer. Three
// properties follow, and the tests hold them:
//
//   - a node that joins takes keys only for itself, and a node that leaves gives
//     away only its own; no key moves between two nodes that stay;
//   - a node of weight 3 owns three times as many keys as a node of weight 1;
//   - the rest of the ranking is the order in which the others stand in.
//
// Left to hashing alone, chance makes some node of ten some 16 % busier than the
// average, at 1,000 keys. [Assign] gives out all keys at once under a bound,
//
//	bound = 1.15 * keys * weight / sum of the weights, rounded up
//
// Keys are served in the order of their score for their first choice, the best
// first. Each gets the first node of its ranking that has room. Few keys do not
// get their owner, 3 of those 1,000; and nodes that see the same roster still come
// to the same answer. The price is that the first of the properties above holds
// only nearly: when a node joins or leaves, every bound changes, and a key at the
// brim may move between two nodes that stay. Measured at 1,000 keys and ten nodes, 3 %
// more keys move than must. With few keys for each node it is more, 16 % with
// twenty. A key that is added or taken away moves hardly ever another one.
//
// A job that is split goes by one key for each shard, see [Part].
//
// # A shard's part of the data
//
// [Split] cuts a range of numbers into as many parts as there are shards, and
// [Contains] gives each text key to one of them. A whole example, which moves the rows of
// a table while a node is killed, is in docs/examples/moverows.
//
// An assignment is a hint about who goes first. The claim in the ledger is what
// decides, so two nodes that for a moment see different rosters cost one claim
// in vain and never a second run.
//
// # Roster
//
// [Roster] keeps the living nodes in Redis. Each node calls [Roster.Beat] every
// third of the TTL or more often; one script call writes its own record, drops
// who was not seen for the TTL and returns the others. Time is Redis' clock
// alone. What happens when
//
//   - a node dies or is cut off: it is dropped one TTL after its last beat;
//   - a node stops cleanly: [Roster.Leave] takes it out at once;
//   - a node comes back: its next beat puts it in again, nothing else is needed;
//   - Redis was away, or its clock stepped forward: the time in which nobody beat
//     counts for at most half a TTL, so nobody is dropped for it;
//   - Redis' clock stepped back: whoever was seen "in the future" was seen now;
//   - Redis was emptied: the next beats fill it again, and View.Unannounced tells
//     a node that its set of named digests has to be announced again.
//
// A repeated call is harmless, so an unknown outcome is mended by calling again.
//
// # Drained names
//
// [Roster.Drain] drains a name, and so every process that beats under it, now or
// later, until [Roster.Resume]. The first beat that finds its name drained shows
// the node to the others as draining in that same call, and tells the node in
// View.Drained; so a process that is started under a drained name is never given
// work. Drains do not expire. At most 1,000 names may be drained.
//
// # Sets
//
// A node holds a set of named digests: the scheduler's nodes name the chunks of
// jobs that they hold. [Roster.Announce] stores a set once
// under its [SetDigest], however many nodes hold it; a member's record names only
// the digest; [Roster.Sets] reads sets back. A set is dropped when no beat has
// named it for 12 TTLs.
//
// # Versions and limits
//
// Records carry a format version. One that is newer than this package knows, or
// that cannot be read at all, is counted in View.Foreign and left alone until its
// time has come like anybody's. A member's record may have 64 KiB, a set 1 MiB.
// A namespace in which nobody beats is gone from Redis after 7 days, but for its
// drains.
package sharding
