package redislock

import (
	_ "embed"
	"fmt"

	"github.com/escapement/escapement/locking"
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

	//go:embed share.lua
	shareLua string
	//go:embed share_acquire.lua
	shareAcquireLua string
	//go:embed share_renew.lua
	shareRenewLua string
	//go:embed share_release.lua
	shareReleaseLua string

	revokeScript = script("lock revoke", shareLua+revokeLua)
	ownerScript  = script("lock owner", shareLua+ownerLua)
)

// scripts are the scripts that differ between a lock, which has one holder, and a share.
type scripts struct{ acquire, renew, release *redisconn.Script }

var (
	lockScripts = scripts{
		acquire: script("lock acquire", acquireLua),
		renew:   redisconn.NewScript("lock renew", renewLua),
		release: script("lock release", releaseLua),
	}
	shareScripts = scripts{
		acquire: script("share acquire", shareLua+shareAcquireLua),
		renew:   redisconn.NewScript("share renew", shareRenewLua),
		release: script("share release", shareLua+shareReleaseLua),
	}
)

func script(name, text string) *redisconn.Script {
	return redisconn.NewScript(name, constants(queueTimeout)+redisconn.TokenLua+queueLua+text)
}

// constants returns the numbers that are the same in every call. As arguments they would cost each call time.
func constants(queueTimeout int64) string {
	return fmt.Sprintf("local guard, keep, queue_timeout, max_queue, max_permits = %d, %d, %d, %d, %d\n",
		redisconn.TokenGuardMicros, stateKeep, queueTimeout, maxQueue, locking.MaxPermits)
}
