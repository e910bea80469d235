// Package fence holds guards that refuse stale fencing tokens, for data in a SQL database and for HTTP services.
// Package redisfence has the guard for data in Redis.
//
// # Why
//
// A lease's context ends with the lease, but no lease can stop a process that pauses between a look
// at the clock and a write. The receiver of the write can: each lease has a token, and of two
// leases of one lock the later one has the larger token. A fence is a name that belongs to one
// lock, or to one job of the scheduler. A guard stores the largest token that it has seen for each
// fence.
//
// # The rule
//
//	token > stored    accepted, and stored
//	token = stored    accepted: the same holder writes again
//	token < stored    refused with a *StaleError, which has the stored token
//
// # Claim first
//
// A new holder shows its token before it reads anything. If it reads first, a late write of the old holder may come
// between its read and its write, and be overwritten unseen. In a transaction, let Check be the first statement.
//
// Compare the token in one step with the write: in its transaction, in its script, or while a Gate admits no other
// token. Between a comparison and a separate write, a late write may come.
//
// # Which guard
//
//	SQL, a row           Updated: your UPDATE has WHERE fence <= token
//	SQL, anything        SQL.Check, first in your transaction
//	SQL, once per tick   SQL.Once, in your transaction
//	Redis                redisfence.Guard: Set, or Run with your script
//	HTTP, one process    Handler over a Memory: admits one token at a time
//	HTTP, many           Handler over SQL.Store or a redisfence.Guard, and the token of TokenFrom
//	                     once more in the transaction of the write
//	S3                   not built: keep the token in the object's metadata; HEAD, compare, PUT
//	                     with If-Match (first If-None-Match: *)
//	DynamoDB             not built: ConditionExpression
//	                     attribute_not_exists(fence) OR fence <= :token
//	etcd                 not built: a transaction that compares the create revision of the lock's
//	                     key, which is the token
//
// # When a new holder is refused
//
// A store of locks that has lost its data may grant a token smaller than a token that a guard has
// seen. The guard refuses the smaller token, which is safe. Acquire the lock once more, with
// locking.Options.After set to the StaleError's Max. Do so only right after an acquisition: a
// holder that has had the lock for a while and is refused has lost it, and must stop.
//
// # Once per tick
//
// Two runs of a job's tick are possible when Redis has lost acknowledged writes. A token does not
// show whether the effect is there already. SQL.Once does: of all transactions that name the same
// job, tick and shard, one commits.
//
// # Not promised
//
//   - Anything about writes without the guard: each writer must use it.
//   - That a refused holder has written nothing: its writes from before the newer token was first
//     seen stay.
//   - That a newer HTTP request is admitted. While an older one does not return, it gets 503: after Handler.Wait,
//     or at once when too many wait.
//   - Anything after a guard has lost its tokens. By itself only a redisfence.Guard with a Config.Keep deletes them,
//     and a Memory when its process ends.
//   - Order between fences. Do not compare tokens of two locks: give each lock its own fence.
//   - That a token is genuine. A token is a number, and the largest one blocks all smaller ones
//     until an operator lowers it by hand. Authenticate callers before the guard.
package fence
