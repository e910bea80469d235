package ledger

import (
	_ "embed"

	"github.com/escapement/escapement/locking/redisconn"
)

var (
	//go:embed scripts/prelude.lua
	preludeSource string
	//go:embed scripts/claim.lua
	claimSource string
	//go:embed scripts/settle.lua
	settleSource string
	//go:embed scripts/renew.lua
	renewSource string
	//go:embed scripts/reassert.lua
	reassertSource string
	//go:embed scripts/reap.lua
	reapSource string
	//go:embed scripts/unclaim.lua
	unclaimSource string
	//go:embed scripts/trigger.lua
	triggerSource string
	//go:embed scripts/define.lua
	defineSource string
	//go:embed scripts/rerun.lua
	rerunSource string
	//go:embed scripts/cancel.lua
	cancelSource string
	//go:embed scripts/pause.lua
	pauseSource string
	//go:embed scripts/rewind.lua
	rewindSource string
	//go:embed scripts/remove.lua
	removeSource string
	//go:embed scripts/follow.lua
	followSource string
	//go:embed scripts/relay.lua
	relaySource string
	//go:embed scripts/relayed.lua
	relayedSource string
	//go:embed scripts/postpone.lua
	postponeSource string
	//go:embed scripts/sweep.lua
	sweepSource string

	//go:embed scripts/begin.lua
	beginSource string
	//go:embed scripts/promote.lua
	promoteSource string
	//go:embed scripts/promoted.lua
	promotedSource string
	//go:embed scripts/beside.lua
	besideSource string

	//go:embed scripts/moving.lua
	movingSource string
	//go:embed scripts/gate.lua
	gateSource string
	//go:embed scripts/reserve.lua
	reserveSource string
	//go:embed scripts/advance.lua
	advanceSource string
	//go:embed scripts/adopt.lua
	adoptSource string
	//go:embed scripts/wipe.lua
	wipeSource string
	//go:embed scripts/drains.lua
	drainsSource string
)

// prelude stands before every script: the token rule, then what the ledger's scripts share.
var prelude = redisconn.TokenLua + preludeSource

var (
	claimScript    = redisconn.NewScript("claim", prelude+claimSource)
	settleScript   = redisconn.NewScript("settle", prelude+settleSource)
	renewScript    = redisconn.NewScript("renew", prelude+renewSource)
	reassertScript = redisconn.NewScript("reassert", prelude+reassertSource)
	reapScript     = redisconn.NewScript("reap", prelude+reapSource)
	unclaimScript  = redisconn.NewScript("unclaim", prelude+unclaimSource)
	triggerScript  = redisconn.NewScript("trigger", prelude+triggerSource)
	defineScript   = redisconn.NewScript("define", prelude+defineSource)
	rerunScript    = redisconn.NewScript("rerun", prelude+rerunSource)
	cancelScript   = redisconn.NewScript("cancel", prelude+cancelSource)
	pauseScript    = redisconn.NewScript("pause", prelude+pauseSource)
	rewindScript   = redisconn.NewScript("rewind", prelude+rewindSource)
	removeScript   = redisconn.NewScript("remove", prelude+removeSource)
	followScript   = redisconn.NewScript("follow", prelude+followSource)
	relayScript    = redisconn.NewScript("relay", prelude+relaySource)
	relayedScript  = redisconn.NewScript("relayed", prelude+relayedSource)
	postponeScript = redisconn.NewScript("postpone", prelude+postponeSource)
	sweepScript    = redisconn.NewScript("sweep", sweepSource) // it needs nothing of the prelude, and is called often

	beginScript    = redisconn.NewScript("begin", prelude+beginSource)
	promoteScript  = redisconn.NewScript("promote", prelude+promoteSource)
	promotedScript = redisconn.NewScript("promoted", prelude+promotedSource)
	besideScript   = redisconn.NewScript("beside", prelude+besideSource)

	gateScript    = redisconn.NewScript("gate", prelude+gateSource)
	reserveScript = redisconn.NewScript("reserve", prelude+movingSource+reserveSource)
	advanceScript = redisconn.NewScript("advance", prelude+movingSource+advanceSource)
	adoptScript   = redisconn.NewScript("adopt", prelude+adoptSource)
	wipeScript    = redisconn.NewScript("wipe", prelude+wipeSource)
	drainsScript  = redisconn.NewScript("drains", prelude+movingSource+drainsSource)
)

// Scripts are the ledger's scripts, for whoever watches what goes over the wire.
func Scripts() []*redisconn.Script {
	return []*redisconn.Script{
		claimScript, settleScript, renewScript, reassertScript, reapScript, unclaimScript, triggerScript, defineScript,
		rerunScript, cancelScript, pauseScript, rewindScript, removeScript, followScript, relayScript, postponeScript, sweepScript,
		beginScript, promoteScript, promotedScript, besideScript,
		gateScript, reserveScript, advanceScript, adoptScript, wipeScript, drainsScript,
	}
}
