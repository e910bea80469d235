package ledger

import (
	"embed"
	"fmt"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed scripts
var sources embed.FS

// source is a piece of a script, by its name: "claim", "lib/history", "codec/entry"; "token" is the
// token rule, which locks and runs share.
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

// keysMark begins the line on which a script names its keys.
const keysMark = "-- keys: "

// assemble puts a script together. A line "-- needs: lib/history codec/entry" stands for those
// pieces, and the pieces that they need, unless these stand before it. Below such a line, their
// definitions are known. A line "-- keys: jobs due" stands for a table k, from a key's name to the
// key.
func assemble(name string, source func(piece string) string) string {
	var b strings.Builder
	there := make(map[string]bool)
	var add func(piece string)
	add = func(piece string) {
		there[piece] = true
		for line := range strings.Lines(source(piece)) {
			if names, ok := strings.CutPrefix(line, keysMark); ok {
				b.WriteString(luaKeys(strings.Fields(names)))
				continue
			}
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

// luaKeys is the Lua table of keys by their names. The last name may be histories: the list of all
// keys that are left.
func luaKeys(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if name == "histories" {
			fmt.Fprintf(&b, "%s = {unpack(KEYS, %d)}", name, i+1)
		} else {
			fmt.Fprintf(&b, "%s = KEYS[%d], ", name, i+1)
		}
	}
	return "local k = {" + strings.TrimSuffix(b.String(), ", ") + "}\n"
}

// script is a script of the ledger with the names of its keys, see namedKeys.
type script struct {
	*redisconn.Script
	keys []string
}

func newScript(name string, source func(piece string) string) *script {
	_, text, _ := strings.Cut(source(name), keysMark)
	names, _, _ := strings.Cut(text, "\n")
	return &script{redisconn.NewScript(name, assemble(name, source)), strings.Fields(names)}
}

// in returns the script's keys below a tag, for one job where it has the job's history.
func (s *script) in(tag, job string) []string {
	return s.each(tag, 1, func(int) string { return job })
}

// each returns the script's keys below a tag, for n items.
func (s *script) each(tag string, n int, job func(item int) string) []string {
	return namedKeys(tag, s.keys, n, job)
}

// scripts are all of them, in the order in which they are made.
var scripts []*redisconn.Script

// ship is the script of that name.
func ship(name string) *script {
	s := newScript(name, source)
	scripts = append(scripts, s.Script)
	return s
}

var (
	claimScript    = ship("claim")
	settleScript   = ship("settle")
	renewScript    = ship("renew")
	tailScript     = ship("tail")
	saveScript     = ship("save")
	reassertScript = ship("reassert")
	recallScript   = ship("recall")
	reapScript     = ship("reap")
	unclaimScript  = ship("unclaim")
	triggerScript  = ship("trigger")
	defineScript   = ship("define")
	currentScript  = ship("current")
	rerunScript    = ship("rerun")
	cancelScript   = ship("cancel")
	pauseScript    = ship("pause")
	rewindScript   = ship("rewind")
	removeScript   = ship("remove")
	followScript   = ship("follow")

	backfillScript = ship("backfill")
	feedScript     = ship("feed")
	unfeedScript   = ship("unfeed")
	refeedScript   = ship("refeed")

	relayScript    = ship("relay")
	giveUpScript   = ship("giveup")
	relayedScript  = ship("relayed")
	postponeScript = ship("postpone")
	sweepScript    = ship("sweep")

	beginScript    = ship("begin")
	promoteScript  = ship("promote")
	promotedScript = ship("promoted")

	announceScript = ship("announce")
	storeScript    = ship("store")
	tidyScript     = ship("tidy")

	gateScript      = ship("gate")
	incarnateScript = ship("incarnate")
	reserveScript   = ship("reserve")
	advanceScript   = ship("advance")
	copyScript      = ship("copy")
	importScript    = ship("import")
	wipeScript      = ship("wipe")
	drainsScript    = ship("drains")

	auditScript    = ship("audit")
	notifiedScript = ship("notified")
	catalogScript  = ship("catalog")
)

// Scripts are the ledger's scripts, for tests and tools that watch the wire.
func Scripts() []*redisconn.Script { return scripts }
