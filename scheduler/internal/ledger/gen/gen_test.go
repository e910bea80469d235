package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFresh: the written files equal the tables' text.
func TestFresh(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	all, err := files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./scheduler/internal/ledger", name, err)
		}
	}
	codecs, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(luaDir), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range codecs {
		if all[luaDir+filepath.Base(path)] == nil {
			t.Errorf("%s belongs to no record", path)
		}
	}
}

// TestExamples: each record's example, and what stands for an absent one, fits its layout.
func TestExamples(t *testing.T) {
	for _, r := range records {
		re := regexp.MustCompile(goPattern(r.pattern()))
		for _, example := range []string{r.example, r.absent} {
			if example != "" && !re.MatchString(example) {
				t.Errorf("%s: %q does not fit %s", r.name, example, re)
			}
		}
		for _, v := range r.views {
			if !regexp.MustCompile(goPattern(r.viewPattern(v))).MatchString(r.example) {
				t.Errorf("%s: %q does not fit view %s", r.name, r.example, v.name)
			}
		}
	}
}

// goPattern is a Lua pattern of a record as a regular expression.
func goPattern(lua string) string {
	return strings.NewReplacer("|", `\|`, "[^|]", `[^|]`, "%d", `\d`, "%l", `[a-z]`).Replace(lua)
}

// TestRowsBeginAlike: views of any row read both kinds.
func TestRowsBeginAlike(t *testing.T) {
	for _, v := range row.views {
		if _, anyKind := v.fixed["kind"]; !anyKind {
			continue
		}
		if !regexp.MustCompile(goPattern(row.viewPattern(v))).MatchString(passed.example) {
			t.Errorf("view %s does not read %q", v.name, passed.example)
		}
	}
	if row.mark+"|S" != passed.mark || row.fields[0].name != "kind" {
		t.Errorf("rows are told apart by another field than the first one")
	}
	for i, f := range passed.fields[:3] {
		if f.name != row.fields[i+1].name {
			t.Errorf("field %s of a range stands where a row has %s", f.name, row.fields[i+1].name)
		}
	}
}
