// Package pglock holds locks in a PostgreSQL database. New returns a [locking.Locker].
//
// It is for programs that have PostgreSQL and no Redis, or whose locks guard rows of the same
// database. It works behind a pooler in transaction mode, such as pgbouncer: it needs no session,
// no prepared statement and no advisory lock. It is a module of its own.
//
// # Tables
//
// [Migrate] creates them, and the functions that change them; Config.Schema and Config.Namespace name them. It
// is run by hand, by the program, or by the first call that misses them (Config.Migrate).
//
//	escapement_locks         one row for each lock: owner, token, end of the lease; locks never delete it
//	escapement_lock_waiters  the queues: owner, place, until when the waiter counts as alive
//	escapement_lock_version  the version of all this; a newer one is refused with ErrNewerSchema
//
// A new lock removes up to two that were idle for a day, so the first table has the locks of about two days.
// Removed locks are safe: the clock is past their tokens. A queue has 1,000 places; more waiters poll. Both
// tables are updated in place, and autovacuum must be on, as it is by default.
//
// The role that runs Migrate needs CREATE on the schema, and owns the objects that it creates. The
// role of the locks needs no more than
//
//	GRANT USAGE ON SCHEMA public TO app;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON escapement_locks, escapement_lock_waiters TO app;
//
// Give the locks a schema in which no other role may create. Whatever the search_path of a session, the statements
// and functions of this package use PostgreSQL's own operators, functions and types. Migrate refuses objects of
// the locks that another role owns, with ErrNotOwned.
//
// After an update of this package run Migrate before the new programs start. Programs of older versions work on.
//
// # Calls
//
// Each call is one function of the database in one transaction: one round trip. A lock changes
// hands under the row lock of its row, and one UPDATE sets owner, token and end by the server's
// clock. Each call may be repeated after a lost reply, also after a commit's: acquire gives the
// same owner the same token, release the same answer. The renewals of many locks are one call. A
// lock that is held is answered without the row lock, so contenders do not delay its holder.
//
// A serialization failure, a deadlock or a broken connection is retried, four tries at most. A
// failure after that, a statement or lock timeout, a server that starts or stops, or one without
// connections left, is locking.ErrUnreachable: the outcome is unknown. So is a read-only server,
// with an error that names the cause. With several hosts in the connection string, set
// target_session_attrs=read-write.
//
// A waiter joins with one call more. The release gives the lock to the first waiter and notifies it
// by NOTIFY; with the waiter's acquire, a handover takes two calls. A driver has one connection for
// notifications, while there are waiters: Config.Listen. Without it, and when a notification is
// lost, a waiter polls about once a second. The queue is in the order of the server's clock. All
// transactions of a PostgreSQL server that notify pass one lock at their commit, so a handover to a
// waiter costs more than a release without one.
//
// When the context of a call ends, pgx requests the server to cancel the statement. pgbouncer 1.18
// sometimes exits on such a request; use a later version.
//
// The functions need PostgreSQL 10. The tests run on PostgreSQL 15 and pgbouncer 1.18.
//
// # Tokens
//
// A token is the largest of: the last one and 1, microseconds of the server's clock, Options.After and 1. On
// another timeline, as after a promotion or a restore, a lock's first token is a minute larger. So tokens
// increase, each alone, across a lapsed lease, a clock that steps back, a restart, a removed row, a truncated
// table (the clock does the work), and a promoted standby that lacks the last grants, if its clock is less than a
// minute behind.
//
// # Promised, and not
//
// A grant and a renewal are on disk before they are acknowledged, whatever the setting of
// synchronous_commit: off and local are raised to on for these transactions. With fsync=off, a
// crash of the machine may lose them.
//
// An asynchronous standby that is promoted lacks the last acknowledged transactions. A lock may then have two
// holders, until the next renewal of the first one, which is answered "gone". Their tokens differ, and the later
// one is the larger. An old primary that still runs grants too; fence it, as any failover of PostgreSQL must.
// The cure is a synchronous standby: with synchronous_standby_names set, and only such a standby promoted, no
// acknowledged grant is lost.
//
// The clock of the server decides when a lease lapses. A step forward ends leases early: see the margin in
// package locking.
//
// Services that do not offer pg_current_wal_lsn need their own escapement_lock_timeline, a function that returns
// a constant text; then the minute of a new timeline is not added.
package pglock
