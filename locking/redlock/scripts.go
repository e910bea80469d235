package redlock

import (
	_ "embed"

	"github.com/escapement/escapement/locking/redisconn"
)

var (
	//go:embed head.lua
	headLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed confirm.lua
	confirmLua string
	//go:embed renew.lua
	renewLua string
	//go:embed topup.lua
	topupLua string
	//go:embed release.lua
	releaseLua string
	//go:embed revoke.lua
	revokeLua string
	//go:embed owner.lua
	ownerLua string
	//go:embed node.lua
	nodeLua string
	//go:embed repair.lua
	repairLua string

	acquireScript = lockScript("redlock acquire", acquireLua)
	confirmScript = lockScript("redlock confirm", confirmLua)
	renewScript   = lockScript("redlock renew", renewLua)
	topupScript   = lockScript("redlock topup", topupLua)
	releaseScript = lockScript("redlock release", releaseLua)
	revokeScript  = lockScript("redlock revoke", revokeLua)
	ownerScript   = lockScript("redlock owner", ownerLua)
	nodeScript    = redisconn.NewScript("redlock node", redisconn.TokenLua+nodeLua)
	repairScript  = redisconn.NewScript("redlock repair", redisconn.TokenLua+repairLua)
)

func lockScript(name, text string) *redisconn.Script {
	return redisconn.NewScript(name, redisconn.TokenLua+headLua+text)
}
