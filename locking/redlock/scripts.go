package redlock

import (
	"embed"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed *.lua
var texts embed.FS

var (
	acquireScript = script("acquire", "head")
	renewScript   = script("renew", "head")
	releaseScript = script("release", "head")
	revokeScript  = script("revoke", "head")
	ownerScript   = script("owner", "head")
	nodeScript    = script("node")
)

// script returns the script of a file, behind token.lua and the files of before.
func script(name string, before ...string) *redisconn.Script {
	src := redisconn.TokenLua
	for _, file := range append(before, name) {
		text, err := texts.ReadFile(file + ".lua")
		if err != nil {
			panic(err)
		}
		src += string(text)
	}
	return redisconn.NewScript("redlock "+name, src)
}

// keyInfix separates a namespace from the name of a lock.
const keyInfix = ":redlock:"

// keys returns the two keys of a lock at one master, and the master's own: lock, state and node of head.lua.
// Because of the braces, a name with a colon cannot have the keys of another.
func (c Config) keys(name string) []string {
	lock := "{" + c.Namespace + keyInfix + name + "}"
	return []string{lock, lock + ":state", c.nodeKey()}
}

// nodeKey is the key for a master's own state.
func (c Config) nodeKey() string { return "{" + c.Namespace + ":redlock}" }
