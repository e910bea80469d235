package main

import (
	"strings"
	"testing"
)

func TestMutate(t *testing.T) {
	const head = "package p\n\nfunc f(a, b bool) (n int) {\n"
	for _, c := range []struct{ name, file, src, want, err string }{
		{"an if", "p.go", head + "//guard:g P1 why\nif a || b {\n\treturn 1\n}\nreturn\n}\n", "if false && (a || b) {\n\treturn 1\n}", ""},
		{"an if with a statement before", "p.go", head + "//guard:g P1 why\nif c := a; c {\n\treturn 1\n} else {\n\tn = 2\n}\nreturn\n}\n", "if c := a; false && (c) {", ""},
		{"a call", "p.go", head + "//guard:g P1 why\nprintln(a,\n\tb)\nreturn\n}\n", "if false { println(a,\n\tb) }\nreturn", ""},
		{"a loop", "p.go", head + "//guard:g P1 why\nfor a {\n\tn++\n}\nreturn\n}\n", "if false { for a {\n\tn++\n} }", ""},
		{"an assignment", "p.go", head + "//guard:g P1 why\nn = 3\nreturn\n}\n", "if false { n = 3 }", ""},
		{"a declaration", "p.go", head + "//guard:g P1 why\nc := 3\nreturn c\n}\n", "", "its variables are needed"},
		{"a return", "p.go", head + "//guard:g P1 why\nreturn\n}\n", "", "cannot be left out"},
		{"nothing behind the mark", "p.go", head + "//guard:g P1 why\n\nreturn\n}\n", "", "no statement begins"},

		{"an if of one line", "s.lua", "-- guard:g P1 why\nif a then return 1 end\nreturn 2\n", "\n\nreturn 2\n", ""},
		{"a reason of two lines", "s.lua", "-- guard:g P1 why,\n-- and why\nif a then return 1 end\nreturn 2\n", "and why\n\nreturn 2\n", ""},
		{"an if with branches", "s.lua", "-- guard:g P1 why\nif a then\n  b()\nelseif c then\n  d()\nelse\n  e()\nend\nreturn 2\n", "why\n\n\n\n\n\n\n\nreturn 2\n", ""},
		{"inside a function", "s.lua", "local function f(a)\n  for i = 1, a do\n    -- guard:g P1 why\n    g(i)\n  end\nend\n", "do\n    -- guard:g P1 why\n\n  end", ""},
		{"the last return", "s.lua", "local function f(a)\n  -- guard:g P1 why\n  return a\nend\n", "why\n\nend", ""},
		{"a call of two lines", "s.lua", "-- guard:g P1 why\nf(a,\n  b)\n", "", "stands on one line"},
		{"an elseif", "s.lua", "if a then\n  b()\n-- guard:g P1 why\nelseif c then\n  d()\nend\n", "", "elseif"},
		{"an empty line", "s.lua", "-- guard:g P1 why\n\na()\n", "", "no statement begins"},
	} {
		t.Run(c.name, func(t *testing.T) {
			marks, err := marksIn(c.file, []byte(c.src))
			if err != nil || len(marks) != 1 {
				t.Fatalf("marks %v, %v", marks, err)
			}
			got, err := marks[0].mutate([]byte(c.src))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("want an error that says %q, got %v\n%s", c.err, err, got)
				}
				return
			}
			if err != nil || !strings.Contains(string(got), c.want) {
				t.Errorf("%v\n%s\nwant in it:\n%s", err, got, c.want)
			}
			if strings.Count(string(got), "\n") != strings.Count(c.src, "\n") {
				t.Error("lines have other numbers now")
			}
		})
	}
}

func TestMarksThatAreRefused(t *testing.T) {
	for src, want := range map[string]string{
		"-- guard:Bad P1 why\n":  "lower-case",
		"-- guard:g P9 why\n":    "no promise",
		"-- guard:g P1\n":        "plain words",
		"-- guard:g a reason \n": "no promise",
	} {
		if _, err := marksIn("s.lua", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error that says %q, got %v", src, want, err)
		}
	}
	if marks, err := marksIn("p.go", []byte("package p\n\n// guard: of what\nvar s = \"//guard:g P1 why\"\n")); err != nil || len(marks) > 0 {
		t.Errorf("found marks where there are none: %v, %v", marks, err)
	}
}
