// Program notices writes the licences of the third-party parts of Escapement's programs and pages:
// THIRD_PARTY_NOTICES for the archives and images of a release, and licenses.txt for the web
// console. The texts come from the module cache and from node_modules:
//
//	go mod download && (cd cmd/escapement-full && go mod download) && (cd scheduler/console/web && npm ci)
//	go run ./cmd/notices
//
// Every module that go.mod requires is listed, including modules for tests: the list has more than
// the programs contain, and needs no build to check.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	notices = "THIRD_PARTY_NOTICES"
	web     = "scheduler/console/web"
	module  = "github.com/escapement/escapement"
)

// pages are the files for the licences of the console's packages: beside the built pages, and in
// the build's sources.
var pages = []string{"scheduler/console/dist/licenses.txt", web + "/public/licenses.txt"}

// part is a third-party module or package.
type part struct{ name, version, dir string }

func (p part) String() string { return strings.TrimSpace(p.name + " " + p.version) }

func main() {
	log.SetFlags(0)
	log.SetPrefix("notices: ")
	if err := write(); err != nil {
		log.Fatal(err)
	}
}

func write() error {
	packages, err := npmPackages()
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	all := append([]part{{name: "Go", dir: strings.TrimSpace(string(root))}}, packages...)
	for _, dir := range []string{".", "cmd/escapement-full"} {
		some, err := goModules(dir)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	text, err := render("the programs of Escapement and its web console", all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(notices, text, 0o644); err != nil { //nolint:gosec // a public document
		return err
	}
	if text, err = render("the web console of Escapement", packages); err != nil {
		return err
	}
	for _, file := range pages {
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a public document
			return err
		}
	}
	return nil
}

// goModules returns the third-party modules that the module in a folder requires.
func goModules(dir string) (all []part, err error) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read go.mod of %s: %w", dir, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for _, r := range file.Require {
		if strings.HasPrefix(r.Path, module) {
			continue
		}
		cmd := exec.Command("go", "mod", "download", "-json", r.Path+"@"+r.Version) //nolint:gosec // of our own go.mod
		text, err := cmd.Output()
		var got struct{ Dir string }
		if bad := json.Unmarshal(text, &got); err != nil || bad != nil {
			return nil, fmt.Errorf("find %s in the module cache: %w", r.Path, errors.Join(err, bad))
		}
		all = append(all, part{r.Path, r.Version, got.Dir})
	}
	return all, nil
}

// npmPackages are the packages that are built into the console's pages.
func npmPackages() (all []part, err error) {
	text, err := os.ReadFile(web + "/package-lock.json")
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, err
	}
	for path, p := range lock.Packages {
		if name, is := strings.CutPrefix(path, "node_modules/"); is && !p.Dev {
			all = append(all, part{"npm:" + name, p.Version, filepath.Join(web, path)})
		}
	}
	return all, nil
}

// licence matches the names of files with licences and notices.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// textOf returns the text of a part's licence files.
func (p part) textOf() (string, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w; see the head of cmd/notices/main.go", p, err)
	}
	var texts []string
	for _, e := range entries {
		if !licence.MatchString(e.Name()) || e.IsDir() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		if err != nil {
			return "", err
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("%s has no file with a licence in %s", p, p.dir)
	}
	return strings.Join(texts, "\n\n"), nil
}

// render lists all parts, and each text once with the parts that it is for.
func render(what string, all []part) ([]byte, error) {
	names, by := map[string]bool{}, map[string][]string{}
	for _, p := range all {
		text, err := p.textOf()
		if err != nil {
			return nil, err
		}
		if !names[p.String()] {
			names[p.String()] = true
			by[text] = append(by[text], p.String())
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Software of others in %s, and its licences. Written by `make notices`.\n\n", what)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	texts := slices.SortedFunc(maps.Keys(by), func(x, y string) int { return strings.Compare(slices.Min(by[x]), slices.Min(by[y])) })
	for _, text := range texts {
		slices.Sort(by[text])
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), strings.Join(by[text], ", "), text)
	}
	return b.Bytes(), nil
}
