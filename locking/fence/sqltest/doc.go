// Package sqltest holds the guards of package fence against real databases:
// PostgreSQL, which the tests start by themselves, and SQLite. It is a module of
// its own, so that their drivers are nobody's dependency. Its tests also play, with
// a real locker, how a fresh holder goes on that a guard has refused.
package sqltest
