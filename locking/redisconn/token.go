package redisconn

import _ "embed"

// TokenGuardMicros is how far ahead of the clock a token jumps, in microseconds, when earlier tokens may have been
// lost: 60 s. It must exceed the clock skew between Redis servers, and the time for which a master may serve while
// cut off from its replicas.
const TokenGuardMicros = 60_000_000

// TokenLua defines three local Lua functions for the beginning of a granting script; see token.lua.
//
//go:embed token.lua
var TokenLua string
