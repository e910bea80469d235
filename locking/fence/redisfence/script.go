package redisfence

import (
	_ "embed"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed fenced.lua
var fencedLua string

// Script is your Lua script behind a guard, for Guard.Run. Make one per script, at package level. It is safe for
// concurrent use.
type Script struct{ script *redisconn.Script }

// NewScript returns a script with a body in Lua. The name is for messages. In the body, KEYS and
// ARGV are the arguments of Run, without the guard's own. The keys must be in the slot of the
// fence. When a script fails half way, its writes until then stay, and its token is stored.
func NewScript(name, body string) *Script {
	return &Script{redisconn.NewScript(name, "local function effect(KEYS, ARGV)\n"+body+"\nend\n"+fencedLua)}
}

var (
	checkScript = NewScript("fence check", "return 1")
	setScript   = NewScript("fence set", `
if ARGV[2] == '0' then return redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`)
)
