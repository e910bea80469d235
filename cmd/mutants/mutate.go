package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	luaparse "github.com/yuin/gopher-lua/parse"
)

// mutate returns the file's text without the guard. Lines keep their numbers.
func (m mark) mutate(src []byte) ([]byte, error) {
	without := withoutGo
	if filepath.Ext(m.File) == ".lua" {
		without = withoutLua
	}
	changed, err := without(m.File, src, m.Line+1)
	if err != nil {
		return nil, fmt.Errorf("%s: guard %s: %w", m.place(), m.Name, err)
	}
	return changed, nil
}

// withoutGo returns the text in which the if that begins on this line is never taken, or another
// statement is never reached. Lines keep their numbers.
func withoutGo(file string, src []byte, line int) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found ast.Stmt
	ast.Inspect(f, func(n ast.Node) bool {
		s, is := n.(ast.Stmt)
		if is && found == nil && fset.Position(s.Pos()).Line == line {
			found = s
		}
		return found == nil
	})
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	switch s := found.(type) {
	case nil:
		return nil, fmt.Errorf("no statement begins on the line after the mark")
	case *ast.IfStmt:
		return wrapped(src, offset(s.Cond.Pos()), offset(s.Cond.End()), "false && (", ")"), nil
	case *ast.DeclStmt, *ast.CaseClause, *ast.CommClause, *ast.LabeledStmt, *ast.ReturnStmt, *ast.BlockStmt:
		return nil, fmt.Errorf("a %T cannot be left out: mark an if or a plain statement", s)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return nil, fmt.Errorf("a := cannot be left out, its variables are needed: mark an if or a plain statement")
		}
	}
	return wrapped(src, offset(found.Pos()), offset(found.End()), "if false { ", " }"), nil
}

func wrapped(src []byte, from, to int, before, after string) []byte {
	return bytes.Join([][]byte{src[:from], []byte(before), src[from:to], []byte(after), src[to:]}, nil)
}

// withoutLua returns the text without the statement that begins on this line: the line, or down to
// the end in its own column. Lines keep their numbers.
func withoutLua(file string, src []byte, line int) ([]byte, error) {
	lines := strings.Split(string(src), "\n")
	text := strings.TrimLeft(lines[line-1], " ")
	code, _, _ := strings.Cut(text, " --")
	word, _, _ := strings.Cut(text, " ")
	last := line
	switch {
	case text == "":
		return nil, fmt.Errorf("no statement begins on the line after the mark")
	case word == "elseif":
		return nil, fmt.Errorf("an elseif is no statement of its own: make it an if")
	case slices.Contains([]string{"if", "for", "while"}, word) && !strings.HasSuffix(code, "end"):
		last += 1 + slices.Index(lines[line:], strings.TrimSuffix(lines[line-1], text)+"end")
	}
	for i := line; i <= last; i++ {
		lines[i-1] = ""
	}
	changed := strings.Join(lines, "\n")
	if _, err := luaparse.Parse(strings.NewReader(changed), file); err != nil {
		return nil, fmt.Errorf("the script does not parse without it; a statement that is no block stands on one line: %w", err)
	}
	return []byte(changed), nil
}
