// Package redisconn holds what every user of Redis in this module needs: clients by URL, the
// check that a client does not retry behind our back, one way to tell an
// unreachable server from an answer, scripts, and the token rule. A program needs [Parse] and [Check] at most; the rest is for the
// other packages of this module, and changes with them.
//
// # Why a client is refused
//
// A lost reply leaves the outcome of a request unknown. The library asks again
// itself, with the same owner or run id, and its scripts then give the same
// answer. go-redis's own retries (three by default) would hide the time this
// takes, and without ContextTimeoutEnabled go-redis ignores a context's
// deadline until its socket timeouts pass, 5 s by default: longer than many a
// lease. So Check wants MaxRetries -1 and ContextTimeoutEnabled true.
//
// A cluster client still repeats a command within MaxRedirects, because Redis
// Cluster cannot be used without redirects. Scripts are idempotent, and a
// call's context bounds the time.
//
// # Tokens
//
// TokenLua is the text of a Lua function that computes the next fencing token.
// A granting script puts it in front of its own text, so that there is one
// token rule whoever grants.
package redisconn
