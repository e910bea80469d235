//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// guard is a line that keeps a promise, and what stands in its place in nodes that are built without it.
type guard struct {
	name      string
	pkg, file string // of the module
	is        string
	without   string
	// scenario is the one that must find out, by saying one of these, when all nodes lack the guard, or the one that is named.
	scenario string
	says     []kind
	only     string
}

// asserting is the line by which a node tells a new server of its runs; without it the server is trusted at once.
var asserting = guard{name: "assert", pkg: "scheduler", file: "failover.go",
	is: "placed = f.assert(ctx, server, last)\n", without: "f.begin(server)\n\t\t_, placed = last, true\n"}

// guards are what -ignore takes out.
var guards = []guard{
	{name: "revision", pkg: "scheduler", file: "register.go", // an old node takes its turn, whoever lives
		is: "return !r.held(ctx, j.Name, stored.Digest)\n", without: "return true\n", scenario: "deploy", says: []kind{backward}},
	{name: "generation", pkg: "scheduler", file: "node.go", // all generations have one definition
		is: "def.Generation = cfg.Generation\n", without: "\n", scenario: "promote", says: []kind{usurper}},
	{name: "seal", pkg: "scheduler/ledger", file: "scripts/prelude.lua", // what has moved is claimed where it was
		is: "if not s or string.find(s, '^1|%d+|[^|]*|open|[^|]*|') then return nil end\n", without: "if true then return nil end\n",
		scenario: "move", says: []kind{double, stray}, only: latecomer},
}

// guardOf finds a guard by its name.
func guardOf(name string) (guard, error) {
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == name })
	if i < 0 {
		return guard{}, fmt.Errorf("-ignore %s: there is no such; there are %s", name, strings.Join(ignorable(), ", "))
	}
	return guards[i], nil
}

func ignorable() []string {
	var out []string
	for _, g := range guards {
		out = append(out, g.name)
	}
	return out
}

// overlay writes an overlay for go build in which the guard is left out, and returns its path.
func (g guard) overlay(dir string) (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/escapement/escapement/"+g.pkg).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	file := filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(g.file))
	text, err := os.ReadFile(file) //nolint:gosec // the path comes from the go tool
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), g.is); n != 1 {
		return "", fmt.Errorf("without %s: %s has %q %d times, not once; mend cmd/torture/without.go", g.name, file, strings.TrimSpace(g.is), n)
	}
	changed, overlay := filepath.Join(dir, "without-"+filepath.Base(file)), filepath.Join(dir, "overlay-"+g.name+".json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), g.is, g.without, 1)), 0o600); err != nil { //nolint:gosec // the path is made by this program
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// named turns what a scenario found without the guard round: it is well when the verifier said what it must.
func (g guard) named(r *row) {
	counts := map[kind]int{}
	for _, v := range r.violations {
		counts[v.kind]++
	}
	found := r.violations
	r.violations = nil
	for _, k := range g.says {
		if counts[k] > 0 {
			r.notes = append(r.notes, fmt.Sprintf("without %s the verifier said %s %d times: %s", g.name, k, counts[k],
				found[slices.IndexFunc(found, func(v violation) bool { return v.kind == k })].what))
			return
		}
	}
	r.add(blind, "without %s the verifier said nothing of %v, but: %v", g.name, g.says, counts)
}
