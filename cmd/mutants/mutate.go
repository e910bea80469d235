package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua/ast"
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

// withoutLua returns the text without the statement that begins on this line, to its last line. Lines keep their numbers.
func withoutLua(file string, src []byte, line int) ([]byte, error) {
	chunk, err := luaparse.Parse(bytes.NewReader(src), file)
	if err != nil {
		return nil, err
	}
	s, last, err := luaStmt(chunk, line)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("no statement begins on the line after the mark")
	}
	lines := strings.Split(string(src), "\n")
	for i := line; i <= last; i++ {
		lines[i-1] = ""
	}
	changed := strings.Join(lines, "\n")
	if _, err := luaparse.Parse(strings.NewReader(changed), file); err != nil {
		return nil, fmt.Errorf("the script does not parse without it; a statement that is no block stands on one line: %w", err)
	}
	return []byte(changed), nil
}

// luaStmt returns the outermost statement that begins on a line, and its last line.
func luaStmt(block []lua.Stmt, line int) (found lua.Stmt, last int, err error) {
	for i, s := range block {
		if s.Line() != line {
			if found, last, err = luaInside(s, line); found != nil || err != nil {
				return found, last, err
			}
			continue
		}
		_, is := s.(*lua.IfStmt)
		if last = max(s.LastLine(), line); is && s.LastLine() == 0 {
			return nil, 0, fmt.Errorf("an elseif is no statement of its own: make it an if")
		}
		if i+1 < len(block) && block[i+1].Line() <= last || i > 0 && max(block[i-1].LastLine(), block[i-1].Line()) == line {
			return nil, 0, fmt.Errorf("another statement stands on its line")
		}
		return s, last, nil
	}
	return nil, 0, nil
}

// luaInside looks for the statement inside another one.
func luaInside(s lua.Stmt, line int) (lua.Stmt, int, error) {
	var blocks [][]lua.Stmt
	switch s := s.(type) {
	case *lua.IfStmt:
		blocks = [][]lua.Stmt{s.Then, s.Else}
	case *lua.DoBlockStmt:
		blocks = [][]lua.Stmt{s.Stmts}
	case *lua.WhileStmt:
		blocks = [][]lua.Stmt{s.Stmts}
	case *lua.RepeatStmt:
		blocks = [][]lua.Stmt{s.Stmts}
	case *lua.NumberForStmt:
		blocks = [][]lua.Stmt{s.Stmts}
	case *lua.GenericForStmt:
		blocks = [][]lua.Stmt{s.Stmts}
	case *lua.FuncDefStmt:
		blocks = [][]lua.Stmt{s.Func.Stmts}
	case *lua.LocalAssignStmt:
		for _, e := range s.Exprs {
			if f, is := e.(*lua.FunctionExpr); is {
				blocks = append(blocks, f.Stmts)
			}
		}
	}
	for _, b := range blocks {
		if found, last, err := luaStmt(b, line); found != nil || err != nil {
			return found, last, err
		}
	}
	return nil, 0, nil
}
