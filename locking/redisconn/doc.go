// Package redisconn makes and checks Redis clients, classifies their errors, runs scripts, and holds the token
// rule.
//
// A program with its own locks uses [Parse] for a client by URL, [Evicts] at its start, and [Explain] for the error of a
// first contact. The rest is for the other packages of this module, and changes with them.
//
// # Why a client is refused
//
// A lost reply leaves the outcome of a request unknown. The library repeats the request itself, with the same
// owner or run id, and its scripts give the same answer. The retries of go-redis (three by default) would hide
// the time that this takes. Without ContextTimeoutEnabled, go-redis ignores a context's deadline until its
// socket timeouts have passed, 5 s by default: longer than many a lease. So Check wants MaxRetries -1 and
// ContextTimeoutEnabled true.
//
// A Cluster client still repeats a command within MaxRedirects, because Redis Cluster needs redirects. Scripts
// are idempotent, and a call's context bounds the time.
//
// # Tokens
//
// TokenLua is a Lua function that computes the next fencing token. Each granting script begins with it, so that
// there is one token rule.
package redisconn
