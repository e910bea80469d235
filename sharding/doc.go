// Package sharding answers two questions: which nodes are there, and which of
// them goes first for a key.
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
//     a node that its set of definitions has to be announced again.
//
// A repeated call is harmless, so an unknown outcome is mended by calling again.
//
// # Sets of definitions
//
// A node holds a set of job definitions. [Roster.Announce] stores a set once
// under its [SetDigest], however many nodes hold it; a member's record names only
// the digest; [Roster.Sets] reads sets back. A set is dropped when no beat has
// named it for 12 TTLs.
//
// # Versions and limits
//
// Records carry a format version. One that is newer than this package knows, or
// that cannot be read at all, is counted in View.Foreign and left alone until its
// time has come like anybody's. A member's record may have 64 KiB, a set 1 MiB.
// A namespace in which nobody beats is gone from Redis after 7 days.
package sharding
