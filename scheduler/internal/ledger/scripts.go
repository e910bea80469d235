package ledger

import (
	"embed"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed scripts/*.lua
var sources embed.FS

// source is one file of scripts.
func source(name string) string {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // it is named below, and was not embedded
	}
	return string(text)
}

// prelude stands before every script but sweep: the token rule, then what the ledger's scripts share. moving is what those share that
// change the control record for a move.
var prelude, moving = redisconn.TokenLua + source("prelude"), source("moving")

// scripts are all of them, in the order in which they are made.
var scripts []*redisconn.Script

// script is the script of that name, with what stands before it.
func script(name, before string) *redisconn.Script {
	s := redisconn.NewScript(name, before+source(name))
	scripts = append(scripts, s)
	return s
}

var (
	claimScript    = script("claim", prelude)
	settleScript   = script("settle", prelude)
	renewScript    = script("renew", prelude)
	reassertScript = script("reassert", prelude)
	recallScript   = script("recall", prelude)
	reapScript     = script("reap", prelude)
	unclaimScript  = script("unclaim", prelude)
	triggerScript  = script("trigger", prelude)
	defineScript   = script("define", prelude)
	rerunScript    = script("rerun", prelude)
	cancelScript   = script("cancel", prelude)
	pauseScript    = script("pause", prelude)
	rewindScript   = script("rewind", prelude)
	removeScript   = script("remove", prelude)
	followScript   = script("follow", prelude)
	relayScript    = script("relay", prelude)
	relayedScript  = script("relayed", prelude)
	postponeScript = script("postpone", prelude)
	sweepScript    = script("sweep", "") // it needs nothing of the prelude, and is called often

	beginScript    = script("begin", prelude)
	promoteScript  = script("promote", prelude)
	promotedScript = script("promoted", prelude)

	announceScript = script("announce", prelude)
	storeScript    = script("store", prelude)
	tidyScript     = script("tidy", prelude)

	gateScript    = script("gate", prelude)
	reserveScript = script("reserve", prelude+moving)
	advanceScript = script("advance", prelude+moving)
	adoptScript   = script("adopt", prelude)
	wipeScript    = script("wipe", prelude)
	drainsScript  = script("drains", prelude+moving)
)

// Scripts are the ledger's scripts, for whoever watches what goes over the wire.
func Scripts() []*redisconn.Script { return scripts }
