// Command gen writes the files that follow from the tables of the ledger's records, keys and verbs.
// From records and keys: the Lua codecs in codec, the Go codec in codec_gen.go and
// codec_beside_gen.go, and docs/storage.md. From verbs: their arguments, in the scripts and in each
// room's args_gen.go.
//
//	go generate ./scheduler/internal/ledger
//
// A record's layout is written in one place, records.go, and a script's arguments in verbs.go. A
// test fails when a written file differs from its table.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := write("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// The files that are written, from the module's root.
const (
	ledgerDir   = "scheduler/internal/ledger/"
	runsCodec   = ledgerDir + "codec_gen.go"
	besideCodec = ledgerDir + "codec_beside_gen.go"
	luaDir      = ledgerDir + "codec/"
	pageFile    = "docs/storage.md"
)

// files are all written files, by their names below the module's root. A file of which only a part
// is written is read there first.
func files(root string) (map[string][]byte, error) {
	all := map[string][]byte{pageFile: page(keys, records)}
	for name, some := range map[string][]record{runsCodec: ofRuns, besideCodec: beside} {
		text, err := goCode(name, some)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	byRoom := make(map[string][]verb)
	for _, v := range verbs {
		byRoom[v.room] = append(byRoom[v.room], v)
	}
	for room, some := range byRoom {
		name := ledgerDir + room + "/args_gen.go"
		text, err := goArgs(name, some)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	for _, v := range verbs {
		name := ledgerDir + v.room + "/" + v.script + ".lua"
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))) //nolint:gosec // G304: a file of this module
		if err != nil {
			return nil, err
		}
		whole, err := v.replaceArgs(string(text))
		if err != nil {
			return nil, err
		}
		all[name] = []byte(whole)
	}
	for _, r := range records {
		if r.lua == "" {
			continue
		}
		name := luaDir + r.lua + ".lua"
		if all[name] == nil {
			all[name] = []byte(luaHead)
		}
		all[name] = append(all[name], luaCode(r)...)
	}
	return all, nil
}

// write writes the files below the module's root.
func write(root string) error {
	all, err := files(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), all[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}
