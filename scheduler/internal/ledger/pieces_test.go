package ledger

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// known are the globals that Redis gives to a script, and that ours use.
var known = []string{"ARGV", "KEYS", "cjson", "error", "ipairs", "math", "pairs", "pcall", "redis", "string", "table", "tonumber", "type", "unpack"}

// TestScriptsAreWhole: each script has what it uses, and none writes a global.
func TestScriptsAreWhole(t *testing.T) {
	for _, s := range scripts {
		chunk, err := parse.Parse(strings.NewReader(s.Source()), s.Name())
		if err != nil {
			t.Fatal(err)
		}
		code, err := lua.Compile(chunk, s.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range globals(code) {
			if !slices.Contains(known, name) {
				t.Errorf("%s.lua uses %s, which none of the pieces before it defines", s.Name(), name)
			}
		}
	}
}

// globals are the names that a function and those in it use and that are no locals.
func globals(code *lua.FunctionProto) (names []string) {
	for _, op := range code.Code {
		if kind := int(op >> 26); kind == lua.OP_GETGLOBAL || kind == lua.OP_SETGLOBAL {
			names = append(names, lua.LVAsString(code.Constants[op&0x3ffff]))
		}
	}
	for _, inner := range code.FunctionPrototypes {
		names = append(names, globals(inner)...)
	}
	return names
}

var (
	defined = regexp.MustCompile(`(?m)^local (?:function )?(\w+)`)
	spelled = regexp.MustCompile(`\w+`)
)

// TestPiecesAreNeeded: each piece is used by its users, and by some script.
func TestPiecesAreNeeded(t *testing.T) {
	used := make(map[string]bool)
	for _, s := range scripts {
		assemble(s.Name(), func(piece string) string {
			used[piece] = true
			return source(piece)
		})
	}
	err := fs.WalkDir(sources, "scripts", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "scripts/"), ".lua")
		if !used[name] {
			t.Errorf("%s is part of no script", path)
		}
		script, _, _ := strings.Cut(name, "/") // its own parts are what it is made of
		words := spelled.FindAllString(code(source(name)), -1)
		for line := range strings.Lines(source(name)) {
			list, _ := strings.CutPrefix(line, "-- needs: ")
			if list == line {
				continue
			}
			for need := range strings.FieldsSeq(list) {
				if !strings.HasPrefix(need, script+"/") && !slices.ContainsFunc(defined.FindAllStringSubmatch(source(need), -1), func(m []string) bool { return slices.Contains(words, m[1]) }) {
					t.Errorf("%s needs %s, and uses nothing of it", path, need)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// code is a piece without its comments.
func code(text string) string { return regexp.MustCompile(`--.*`).ReplaceAllString(text, "") }
