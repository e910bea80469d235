package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// required matches a line of go.mod that requires a foreign module.
var required = regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)(?: // indirect)?$`)

// modules are what the go.mod of a folder requires, as the notices list it.
func modules(t *testing.T, folder string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(folder + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range required.FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(m[1], "github.com/escapement/escapement") {
			all = append(all, m[1]+" "+m[2])
		}
	}
	if len(all) < 10 {
		t.Fatalf("%s/go.mod: %d modules are found there", folder, len(all))
	}
	return all
}

// packages are the npm packages in the console's pages, as the notices list them.
func packages(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../scheduler/console/web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for path, p := range lock.Packages {
		if name, is := strings.CutPrefix(path, "node_modules/"); is && !p.Dev {
			all = append(all, "npm:"+name+" "+p.Version)
		}
	}
	return all
}

// listed are the names and versions in the head of a file of notices, and the number of its texts.
func listed(t *testing.T, file string) (all []string, texts int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, licences, _ := strings.Cut(string(text), "\n====")
	for line := range strings.Lines(head) {
		if name, is := strings.CutPrefix(line, "  "); is {
			all = append(all, strings.TrimSpace(name))
		}
	}
	return all, strings.Count(licences, "\n====") + 1
}

// The notices have each module and package, in the version that is used, and nothing else.
func TestNotices(t *testing.T) {
	pages := packages(t)
	programs := slices.Concat([]string{"Go"}, modules(t, ".."), modules(t, "../cmd/escapement-full"), pages)
	for file, want := range map[string][]string{
		"../THIRD_PARTY_NOTICES": programs, "../scheduler/console/dist/licenses.txt": pages, "../scheduler/console/web/public/licenses.txt": pages,
	} {
		got, texts := listed(t, file)
		if missing := without(want, got); len(missing) > 0 {
			t.Errorf("%s lacks %v: make notices", file, missing)
		}
		if extra := without(got, want); len(extra) > 0 {
			t.Errorf("%s has %v, which is not used: make notices", file, extra)
		}
		if texts < 2 {
			t.Errorf("%s: %d texts", file, texts)
		}
	}
	for _, file := range []string{"../.goreleaser.yaml", "deploy/Dockerfile", "deploy/release.Dockerfile"} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "THIRD_PARTY_NOTICES") {
			t.Errorf("%s does not pack THIRD_PARTY_NOTICES: %v", file, err)
		}
	}
}

// without are the texts of a list that another one does not have.
func without(all, others []string) (left []string) {
	for _, text := range all {
		if !slices.Contains(others, text) && !slices.Contains(left, text) {
			left = append(left, text)
		}
	}
	return left
}
