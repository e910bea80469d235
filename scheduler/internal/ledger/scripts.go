package ledger

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed incarnate.lua */*.lua
var pieces embed.FS

// Source is a piece of a script, by its file below this folder: "claim/tick" is of the room claim;
// pieces that several rooms share are "lib/history" and "codec/entry", and "token" is the token
// rule, which locks and runs share.
func Source(piece string) string {
	if piece == "token" {
		return redisconn.TokenLua
	}
	text, err := pieces.ReadFile(piece + ".lua")
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

// Script is a script of the ledger with the names of its keys, see namedKeys.
type Script struct {
	*redisconn.Script
	Piece string // the name of its first piece
	Args  any    // the zero value of its JSON argument; nil for packed arguments
	keys  []string
}

// scripts are all of them, in the order in which they are made.
var scripts []*Script

// Scripts are the ledger's scripts, for tests and tools that watch the wire.
func Scripts() []*Script { return scripts }

// Ship is the script that begins with a piece. args is the zero value of its JSON argument; nil for
// packed arguments.
func Ship(piece string, args any) *Script {
	s := &Script{Piece: piece, Args: args}
	s.Use(Source)
	scripts = append(scripts, s)
	return s
}

// Use makes the script of other sources, for tests.
func (s *Script) Use(source func(piece string) string) {
	_, text, _ := strings.Cut(source(s.Piece), keysMark)
	names, _, _ := strings.Cut(text, "\n")
	s.Script, s.keys = redisconn.NewScript(path.Base(s.Piece), assemble(s.Piece, source)), strings.Fields(names)
}

// In returns the script's keys below a tag, for one job where it has the job's history.
func (s *Script) In(tag, job string) []string {
	return s.Each(tag, 1, func(int) string { return job })
}

// Each returns the script's keys below a tag, for n items.
func (s *Script) Each(tag string, n int, job func(item int) string) []string {
	return namedKeys(tag, s.keys, n, job)
}
