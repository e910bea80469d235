//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The line by which a node tells a new server of its runs, and what stands there without: the server is trusted at once.
const (
	assertedIn = "failover.go" // of the package scheduler
	asserts    = "placed = f.assert(ctx, server, last)\n"
	trusts     = "f.begin(server)\n\t\t_, placed = last, true\n"
)

// unassert writes an overlay for go build in which nodes do not tell a new server of their runs, and returns its path.
func unassert(dir string) (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/escapement/escapement/scheduler").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	file := filepath.Join(strings.TrimSpace(string(out)), assertedIn)
	text, err := os.ReadFile(file) //nolint:gosec // the path comes from the go tool
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), asserts); n != 1 {
		return "", fmt.Errorf("-without: %s has %q %d times, not once; mend cmd/torture/without.go", file, strings.TrimSpace(asserts), n)
	}
	changed, overlay := filepath.Join(dir, assertedIn), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), asserts, trusts, 1)), 0o600); err != nil { //nolint:gosec // the path is made by this program
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o600)
}
