// Package sqltest holds the guards of package fence against real databases: PostgreSQL, which the
// tests start by themselves, and SQLite. It is a module of its own, so that no program depends on
// their drivers. Its tests also play, with a real locker, how a fresh holder goes on after a
// guard's refusal.
package sqltest
