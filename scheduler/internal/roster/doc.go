// Package roster keeps the list of living nodes.
//
// [Roster] stores the nodes in Redis. Each node calls [Roster.Beat] at least every third of the
// TTL. That call is one script, which writes the node's record, drops nodes that were not seen for
// the TTL, and returns the other nodes. Only Redis' clock counts. What happens when
//
//   - a node dies or is cut off: it is dropped one TTL after its last beat;
//   - a node stops cleanly: [Roster.Leave] removes it at once;
//   - a node comes back: its next beat adds it again;
//   - Redis was unreachable, or its clock stepped forward: a time without any beat counts for at most
//     half a TTL, so no node is dropped for it;
//   - Redis' clock stepped back: a node that was seen in the future counts as seen now;
//   - Redis was emptied: the next beats fill it again, and View.Unannounced makes a node announce
//     its set of definitions again.
//
// A repeated call is harmless, so after an unknown outcome call again.
//
// # Drained names
//
// [Roster.Drain] drains a name, and so every process that beats with that name, now or later, until
// [Roster.Resume]. From its first beat on, a node with a drained name is draining for all other
// nodes, and for itself by View.Drained; so a process that starts with a drained name never gets
// work. Drains do not expire. At most 1,000 names may be drained.
//
// # Sets of definitions
//
// A node holds a set of job definitions. [Roster.Announce] stores a set once under its [SetDigest],
// however many nodes hold it. A member's record contains only the digest; [Roster.Sets] reads sets
// back. A set is dropped when no beat has named it for 12 TTLs.
//
// # Versions and limits
//
// Records carry a format version. A record with a newer version, or one that cannot be read at all,
// is counted in View.UnknownFormat and kept until it expires like any other. A member's record may
// have 64 KiB, a set 1 MiB. The keys of a namespace without beats expire after 7 days, except its
// drains.
package roster
