// Package roster says which nodes there are.
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
// # Drained names
//
// [Roster.Drain] drains a name, and so every process that beats under it, now or
// later, until [Roster.Resume]. The first beat that finds its name drained shows
// the node to the others as draining in that same call, and tells the node in
// View.Drained; so a process that is started under a drained name is never given
// work. Drains do not expire. At most 1,000 names may be drained.
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
// A namespace in which nobody beats is gone from Redis after 7 days, but for its
// drains.
package roster
