package redisfence

import (
	_ "embed"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed fenced.lua
var fencedLua string

// Script is what a Guard runs when a token is current. Make one per script, at
// package level; it is safe for concurrent use.
type Script struct{ script *redisconn.Script }

// NewScript returns a script of yours behind a guard. The name is for messages.
// In its body, KEYS and ARGV are those that were given to Run: the guard's own
// stand apart. Keys must lie in the slot of the fence. A script that fails half
// way has done what it did until then, and its token is remembered.
func NewScript(name, body string) *Script {
	return &Script{redisconn.NewScript(name, "local function effect(KEYS, ARGV)\n"+body+"\nend\n"+fencedLua)}
}

var (
	checkScript = NewScript("fence check", "return 1")
	setScript   = NewScript("fence set", `
if ARGV[2] == '0' then return redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`)
)
