package redisconn

import _ "embed"

// TokenGuardMicros is how far a token jumps, in microseconds, when the history
// of tokens may have been lost: 60 s. It must exceed the expected clock skew
// between Redis servers and the life of a master cut off from its replicas.
const TokenGuardMicros = 60_000_000

// TokenLua defines three local Lua functions, to be put in front of a granting
// script. token.lua says what they take and return.
//
//go:embed token.lua
var TokenLua string
