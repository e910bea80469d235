package redislock

import (
	_ "embed"
	"fmt"

	"github.com/escapement/escapement/locking/redisconn"
)

var (
	//go:embed queue.lua
	queueLua string
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
	return redisconn.NewScript(name, constants(queueTimeout)+redisconn.TokenLua+queueLua+text)
}

// constants returns the numbers that are the same in every call. As arguments they would cost each call time.
func constants(queueTimeout int64) string {
	return fmt.Sprintf("local guard, keep, queue_timeout, max_queue = %d, %d, %d, %d\n", redisconn.TokenGuardMicros, stateKeep, queueTimeout, maxQueue)
}
