// Package fence holds the guards that refuse stale fencing tokens: for what is
// kept in a SQL database, behind HTTP, and (redisfence) in Redis.
//
// # Why
//
// A lease tells its holder when it ends, and no lease can stop a process that
// stands still between looking at the clock and sending a write. Whoever gets
// the write can: the lease carries a token, and of two leases of one lock the
// later has the larger token. A fence is a name that belongs to one lock (or to
// one job of the scheduler), and a guard keeps the largest token that it has
// seen for it.
//
// # The rule
//
//	token > stored    accepted, and stored
//	token = stored    accepted: the same holder writes once more
//	token < stored    refused with a *StaleError, which carries the stored one
//
// # Claim first
//
// A new holder shows its token before it reads anything. If it reads first, a
// late write of the old holder may land between its reading and its writing, and
// is then overwritten as if it had never been. In a transaction, let Check be
// the first statement.
//
// The token must be compared where the effect happens, in one step with it: in
// the same transaction, the same script, or while the fence is kept shut. A
// guard that is asked first and written past afterwards lets a late write
// through in between.
//
// # Where the effect is
//
//	SQL, a row           Updated: the caller's UPDATE says WHERE fence <= token
//	SQL, anything        SQL.Check, first in the caller's transaction
//	SQL, once per tick   SQL.Once, in the caller's transaction
//	Redis                redisfence.Guard: Set, or a script of yours with Run
//	HTTP, one process    Handler over a Memory: holds newer ones back meanwhile
//	HTTP, many           Handler over SQL.Store or a redisfence.Guard, and once
//	                     more, with TokenFrom, in the transaction of the effect
//	S3                   not built: keep the token in the object's metadata; HEAD,
//	                     compare, PUT with If-Match (first If-None-Match: *)
//	DynamoDB             not built: ConditionExpression
//	                     attribute_not_exists(fence) OR fence <= :token
//	etcd                 not built: a transaction that compares the create
//	                     revision of the lock's key, which is the token
//
// # When a fresh holder is refused
//
// A store of locks that has lost all it knew may grant a token smaller than one
// that a guard has seen. The guard refuses it, which is safe, and says how to go
// on: acquire the lock once more with locking.Options.After set to the
// StaleError's Max. Do so only right after an acquisition. Whoever has held the
// lock for a while and is refused has lost it, and must stop.
//
// # Once per tick
//
// Two runs of one tick of a job are possible when Redis has lost what it had
// acknowledged, and tokens do not tell an effect that is already there from one
// that is not. SQL.Once does: of all transactions that name the same job, tick
// and shard, one commits.
//
// # What is not promised
//
//   - Anything about writes that go past the guard: each writer must use it.
//   - That a refused holder has done nothing: what it wrote before the newer one
//     first showed its token stays.
//   - That a newer HTTP request gets in. While an older one does not return, it is
//     told to come again: after Handler.Wait, or at once when too many wait.
//   - Anything after a guard has forgotten. Nothing here forgets by itself, save
//     a redisfence.Guard with a Config.Keep and a Memory when its process ends.
//   - Order among fences. Tokens of two locks must not be compared: give each
//     lock a fence of its own.
//   - That a token is genuine. It is a number, and whoever shows the largest one
//     shuts the fence for all others until somebody lowers it by hand. Who may
//     send one is a matter for authentication, in front of the guard.
package fence
