package redislock

import (
	_ "embed"
	"fmt"

	"github.com/escapement/escapement/locking/redisconn"
)

var (
	//go:embed line.lua
	lineLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
	//go:embed revoke.lua
	revokeLua string
	//go:embed owner.lua
	ownerLua string

	acquireScript = script("lock acquire", acquireLua)
	renewScript   = redisconn.NewScript("lock renew", renewLua)
	releaseScript = script("lock release", releaseLua)
	revokeScript  = script("lock revoke", revokeLua)
	ownerScript   = script("lock owner", ownerLua)
)

func script(name, text string) *redisconn.Script {
	return redisconn.NewScript(name, numbers(patience)+redisconn.TokenLua+lineLua+text)
}

// numbers are what no call changes: they would cost each call arguments.
func numbers(patience int64) string {
	return fmt.Sprintf("local guard, keep, patience, most = %d, %d, %d, %d\n", redisconn.TokenGuardMicros, stateKeep, patience, mostInLine)
}
