package redislock

import (
	_ "embed"

	"github.com/escapement/escapement/locking/redisconn"
)

var (
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string

	acquireScript = redisconn.NewScript("lock acquire", redisconn.TokenLua+acquireLua)
	renewScript   = redisconn.NewScript("lock renew", renewLua)
	releaseScript = redisconn.NewScript("lock release", releaseLua)
)
