// Package etcdlock holds locks in an etcd cluster. New returns a [locking.Locker], Connect a client for it.
//
// # Keys
//
// Names and owner values are escaped as path segments. keys.go spells the keys of a lock:
//
//	prefix/lock/name/hold/owner    the holder: one key at most. Its value has the holder's text, the
//	                               token's offset, and whether the grant was revoked
//	prefix/lock/name/queue/owner   the waiters, in the order of their create revisions
//	prefix/lock/name/released      the owner value that released last, for 5 to 10 minutes
//	prefix/offset                  a number that is added to revisions; see Tokens. Only after a hint
//
// Each acquisition has a key of its own, on a lease of its own; none is shared by a process. The
// lease's id follows from the prefix, the name and the owner value, so a repeated request finds the
// keys of the first one. The queue's key has a second lease, of locking.QueueTimeout. A process
// that is killed between two requests leaves a lease without a key, which lapses.
//
// # Transactions
//
// Each of these is one transaction, so that all of it is decided at one revision:
//
//   - take: the lock has no holder, the owner's place in the queue is the first (or the queue is
//     empty), and the owner was not the last to release. Then the holder's key is made.
//   - join: the owner has no place. Then its key is put at the end of the queue.
//   - take over: the holder's key has the requested create revision. Then the key is replaced.
//   - release: the owner's key is there. Then it is deleted, and the owner noted as the last.
//
// Each may be repeated: the owner's key, or the note, shows that it was done. A lease ends in the
// background after its release.
//
// A free lock costs two requests, a lease and take; its release one, and one in the background. A
// try for a held lock costs three, and one in the background. A waiter watches the key before its
// own in the queue, or the holder's, and its own key; no other waiter is woken. A hand-over is the
// release, the notification, a keep-alive and take. A hundred renewals are two requests: the
// keep-alives on one stream, and one transaction that reads the keys.
//
// # Leases
//
// A lease in etcd has whole seconds and a minimum, one and a half times the election timeout (2 s
// by default). The holder's deadline follows from the requested TTL; waiters wait for etcd's lease:
// TTL and Delay, rounded up, and up to about a second until etcd has noticed the lapse. After a
// change of the leader, etcd begins each lease anew, so waiters wait longer. Time left is shown in
// whole seconds, rounded up.
//
// A keep-alive is answered by the leader alone. A leader that was replaced, and has not noticed
// yet, answers too. So a renewal counts only when a later read, which went through a majority,
// found the key and the same Raft term.
//
// # Tokens
//
// A token is the create revision of the holder's key and the offset that was current in the
// transaction that made the key. Tokens of a lock increase: take and take over need the previous
// key to be gone, so the next key has a larger create revision; and the offset is only ever raised.
// Tokens of different locks are not related.
//
// A cluster restored from a snapshot, or made anew, begins with smaller revisions. Guards refuse its
// tokens then. Acquire with Options.After set to the token that the guard names: the offset is raised, so
// that the tokens of all locks under the prefix are larger from then on. That holds because the new offset
// and the present revision are the hint, and each later revision is larger. A hint more than 3.6e9 above
// the present tokens is refused; after such a loss write the offset by hand, or restore with etcdutl's
// --bump-revision.
//
// # Under failures
//
//   - A minority of the members grants and renews nothing: calls end with ErrUnreachable, and the contexts
//     of holders that reach no other member end at their local deadlines.
//   - When the leader is lost, calls fail until a new one is elected, one to three seconds by default. Holders
//     keep their leases if TTL less the margin is longer than that: use 10 s or more.
//   - Keys under the prefix that something else has written concern their own lock only. A foreign key in a
//     queue is deleted when it comes first; a foreign holder is shown by Owner and ends with TakeOver.
//
// # What the operator does
//
// An acquisition and its release write two revisions, after a wait three. Only the released key stays of them.
// But etcd keeps the history of all keys until it is compacted: set --auto-compaction-retention. With users,
// the lock's user needs read and write permission for the range of "prefix/".
package etcdlock
