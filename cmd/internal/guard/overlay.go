package guard

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Overlay writes the files of the module at root without these guards, and the list of them that `go build -overlay`
// reads. It returns the list's path. All files lie in dir and have name in theirs.
func Overlay(root, dir, name string, without ...Mark) (string, error) {
	replace, changed := make(map[string]string), make(map[string][]byte)
	for _, m := range without {
		path := filepath.Join(root, filepath.FromSlash(m.File))
		src := changed[path]
		if src == nil {
			var err error
			if src, err = os.ReadFile(path); err != nil { //nolint:gosec // G304: a file of this module
				return "", err
			}
		}
		var err error
		if changed[path], err = m.Mutate(src); err != nil {
			return "", err
		}
		replace[path] = filepath.Join(dir, name+"-"+strings.ReplaceAll(m.File, "/", "-"))
	}
	for path, src := range changed {
		if err := os.WriteFile(replace[path], src, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(dir, name+".json")
	return path, cmp.Or(err, os.WriteFile(path, list, 0o600))
}

// Root is the folder of the go.mod of Escapement that this program is started in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // G304: the module's own file
		if err == nil && strings.HasPrefix(string(mod), "module github.com/escapement/escapement\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run it inside Escapement's module")
		}
	}
}
