// Command gen writes what follows from the tables of the ledger's records and keys: the Lua codecs in scripts/codec, the Go
// codec in codec_gen.go, and docs/storage.md.
//
//	go generate ./scheduler/internal/ledger
//
// A record's layout is written in one place, records.go. Its test fails when a written file is not what the tables say.
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
	ledgerDir = "scheduler/internal/ledger/"
	goFile    = ledgerDir + "codec_gen.go"
	luaDir    = ledgerDir + "scripts/codec/"
	pageFile  = "docs/storage.md"
)

// files are all of them, by their names.
func files() (map[string][]byte, error) {
	code, err := goCode(records)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{goFile: code, pageFile: page(keys, records)}
	for _, r := range records {
		if r.lua == "" {
			continue
		}
		all[luaDir+r.lua+".lua"] = append(all[luaDir+r.lua+".lua"], luaCode(r)...)
	}
	for name, text := range all {
		if filepath.Ext(name) == ".lua" {
			all[name] = append([]byte(luaHead), text...)
		}
	}
	return all, nil
}

// write writes the files below the module's root.
func write(root string) error {
	all, err := files()
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
