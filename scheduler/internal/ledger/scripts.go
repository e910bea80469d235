package ledger

import (
	"embed"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed scripts
var sources embed.FS

// source is a piece of a script, by its name: "claim", "lib/history", "codec/entry"; "token" is the token rule, which locks and runs
// share.
func source(piece string) string {
	if piece == "token" {
		return redisconn.TokenLua
	}
	text, err := sources.ReadFile("scripts/" + piece + ".lua")
	if err != nil {
		panic(err) // a piece names it that was not tested
	}
	return string(text)
}

// assemble puts a script together. A line "-- needs: lib/history codec/entry" stands for those pieces, and what they need, that do
// not stand before it. Below such a line, what they define is known.
func assemble(name string, source func(piece string) string) string {
	var b strings.Builder
	there := make(map[string]bool)
	var add func(piece string)
	add = func(piece string) {
		there[piece] = true
		for line := range strings.Lines(source(piece)) {
			list, needs := strings.CutPrefix(line, "-- needs: ")
			if !needs {
				b.WriteString(line)
				continue
			}
			for need := range strings.FieldsSeq(list) {
				if !there[need] {
					add(need)
				}
			}
		}
	}
	add(name)
	return b.String()
}

// scripts are all of them, in the order in which they are made.
var scripts []*redisconn.Script

// script is the script of that name.
func script(name string) *redisconn.Script {
	s := redisconn.NewScript(name, assemble(name, source))
	scripts = append(scripts, s)
	return s
}

var (
	claimScript    = script("claim")
	settleScript   = script("settle")
	renewScript    = script("renew")
	reassertScript = script("reassert")
	recallScript   = script("recall")
	reapScript     = script("reap")
	unclaimScript  = script("unclaim")
	triggerScript  = script("trigger")
	defineScript   = script("define")
	currentScript  = script("current")
	rerunScript    = script("rerun")
	cancelScript   = script("cancel")
	pauseScript    = script("pause")
	rewindScript   = script("rewind")
	removeScript   = script("remove")
	followScript   = script("follow")
	relayScript    = script("relay")
	relayedScript  = script("relayed")
	postponeScript = script("postpone")
	sweepScript    = script("sweep")

	beginScript    = script("begin")
	promoteScript  = script("promote")
	promotedScript = script("promoted")

	announceScript = script("announce")
	storeScript    = script("store")
	tidyScript     = script("tidy")

	gateScript    = script("gate")
	reserveScript = script("reserve")
	advanceScript = script("advance")
	copyScript    = script("copy")
	importScript  = script("import")
	wipeScript    = script("wipe")
	drainsScript  = script("drains")
)

// Scripts are the ledger's scripts, for whoever watches what goes over the wire.
func Scripts() []*redisconn.Script { return scripts }
