// Package zklock holds locks in a ZooKeeper ensemble (3.5 or later). New returns a [locking.Locker].
//
// # Nodes
//
//	ROOT                        persistent: a random ID. Config.Root
//	ROOT/tokens-ID              persistent: the base of the tokens
//	ROOT/lock-NAME              container: a lock; its version changes with each grant
//	ROOT/lock-NAME/held-OWNER   ephemeral: the holder, its TTL and delay, as JSON
//	ROOT/lock-NAME/wait-OWNER!N ephemeral sequential: a waiter
//
// NAME and OWNER are escaped as elements of a URL path, so a lock may have any name. ZooKeeper
// looks for empty containers once a minute (znode.container.checkIntervalMs) and removes them, so
// an unused lock leaves nothing behind. Other nodes below a lock are ignored.
//
// # Acquire, renew, release
//
// A lock is free when it has no node held-OWNER. An acquire reads the children, and then creates
// its node in one transaction, on the condition that the version of the lock's node has not changed
// since the read. Each grant changes that version, so of two requests one fails and looks again. If
// ZooKeeper has replaced the container meanwhile, the transaction's answer shows that, and the
// owner removes its node and looks again. OWNER is unique per acquisition: after a lost reply, the
// repeated request finds its node among the children, and gets the same token.
//
// A renewal reads the node and writes it, which shows that the node is there, and that ZooKeeper
// had a message of the session after the call began. A release deletes the node.
//
// A waiter creates its node, unless an earlier request has, and watches the node before it: the
// previous waiter's, or the holder's. So a release notifies one waiter, which looks at all children
// before it takes the lock.
//
// # Sessions
//
// A lease ends in one of three ways: its owner releases it; its TTL and delay pass without a renewal, and the driver, which
// has a timer for each lease, deletes its node; or, when the process is dead or cut off, its session expires and ZooKeeper
// deletes the node. So a session must last longer than the leases in it. A Client has a session, with its own connection,
// for each session time-out that its locks need: the shortest of 1, 1.5, 2, 3, 4, 6, 8, 12, ... seconds that is one and a half
// times TTL and delay, or more. With the default TTL of 15 s it is 24 s. Waiters have a session of 3 s, so the place of
// a waiter that is cut off is free after locking.QueueTimeout.
//
// Why one and a half times: see session.lasts. Waiters wait as long for the lock of a process that
// was killed. The server limits session time-outs to 2 to 20 of its ticks, 4 s to 40 s by default:
// with shorter TTLs waiters wait for 4 s and the tick, and TTL and delay of more than 26 s are
// refused with an [locking.InputError], until maxSessionTimeout is raised.
//
// No promise depends on comparing clocks of machines, only on their rates. Config.Margin must be
// half a tickTime of the servers at least, which is the default of both.
//
// # Under failures
//
//   - A leader that dies: calls fail until there is a new one, about a second later; sessions, and the locks in them, stay.
//   - A server without quorum answers nothing. Its clients go to the next server; a client that has
//     no other loses its leases at their local deadlines, before ZooKeeper gives the locks away.
//   - A server that hangs: a call without an answer closes the connection, and the client goes to the next server.
//   - A restart: locks stay held when the servers are back within the session time-out.
//   - A node that an operator deletes: the holder's lease is lost at its next renewal; a waiter gets a new place.
//
// # Tokens
//
// A token is the czxid of the holder's node, the number of the change that created it, plus a base
// for all locks of the root. The comment on type base explains why tokens increase: across
// elections, restarts, and the loss of all data.
//
// # Credentials
//
// With ClientConfig.Auth all nodes are for the same identity only. The credentials are sent on each connection; encrypt it
// with ClientConfig.Dial.
package zklock
