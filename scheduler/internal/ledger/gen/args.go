package main

import (
	"fmt"
	"strings"
)

// verb is a script with its arguments.
type verb struct {
	room   string // its package below the ledger
	script string
	args   []arg
	forms  []form // the items of a batch, behind the arguments: all in one form, or each in one of several
}

// form is one way to spell an item.
type form struct {
	name, doc string
	args      []arg
	places    bool // the script reads it by places, for speed, and not as a table
}

// arg is one argument.
type arg struct {
	name    string // in Lua
	typ     argType
	numeric bool // the script takes it as a number
	doc     string
}

// argType is the type of an argument in Go, and how it is spelt there.
type argType struct{ typ, write string }

var (
	argText     = argType{"string", "%s"}
	argTidied   = argType{"string", "ledger.Plain(%s)"}
	argNumber   = argType{"int64", "ledger.Spell(%s)"}
	argOptional = argType{"int64", "ledger.SpellOrNone(%s)"}
	argInt      = argType{"int", "strconv.Itoa(%s)"}
	argMillis   = argType{"time.Duration", "ledger.Spell(%s.Milliseconds())"}
	argFlag     = argType{"bool", "ledger.SpellFlag(%s)"}
	argBytes    = argType{"[]byte", "string(%s)"}
	argOutcome  = argType{"jobs.Outcome", "%s.String()"}
)

// The lines between which a script's arguments are written.
const (
	argsBegin = "-- ARGV, written by gen from verbs.go:\n"
	argsEnd   = "-- end of ARGV\n"
)

// replaceArgs is the script's text with its arguments from the table.
func (v verb) replaceArgs(text string) (string, error) {
	before, rest, begins := strings.Cut(text, argsBegin)
	_, after, ends := strings.Cut(rest, argsEnd)
	if !begins || !ends {
		return "", fmt.Errorf("%s.lua: no place for the arguments: want the lines %q and %q", v.script, argsBegin, argsEnd)
	}
	return before + argsBegin + v.lua() + argsEnd + after, nil
}

// lua names the arguments in a script.
func (v verb) lua() string {
	var b strings.Builder
	var names, values []string
	for i, a := range v.args {
		b.WriteString(a.line())
		names, values = append(names, a.name), append(values, a.value(fmt.Sprintf("ARGV[%d]", i+1)))
	}
	for _, f := range v.forms {
		which := ""
		if f.doc != "" {
			which = ", if it is " + f.doc
		}
		fmt.Fprintf(&b, "-- then for each item%s:\n", which)
		for _, a := range f.args {
			b.WriteString(a.line())
		}
	}
	if len(names) > 0 {
		b.WriteString(strings.TrimSuffix(folded("local ", names, ", ", " =\n"), "\n") + folded(" ", values, ", ", "\n"))
	}
	for _, f := range v.forms {
		b.WriteString(v.luaForm(f))
	}
	return b.String()
}

// luaForm is how a script reads items of a form.
func (v verb) luaForm(f form) string {
	size, first, alone := len(f.args), len(v.args)+1, len(v.forms) == 1
	var places, names, set []string
	for i, a := range f.args {
		place := "ARGV[a]"
		if i > 0 {
			place = fmt.Sprintf("ARGV[a + %d]", i)
		}
		places, names = append(places, fmt.Sprint(i)), append(names, strings.ToUpper(a.name))
		set = append(set, a.name+" = "+a.value(place))
	}
	count := ""
	if alone {
		count = fmt.Sprintf("local n = (#ARGV - %d) / %d\n", len(v.args), size)
	}
	switch read := folded("  return {", set, ", ", "}\nend\n"); {
	case alone && f.places:
		return count + fmt.Sprintf("local function place(i) return %d + (i - 1) * %d end\nlocal %s = %s\n", first, size,
			strings.Join(names, ", "), strings.Join(places, ", "))
	case alone:
		return count + fmt.Sprintf("local function %s(i)\n  local a = %d + (i - 1) * %d\n%s", f.name, first, size, read)
	case f.places:
		return fmt.Sprintf("local %s, %s = %d, %s -- how many, and their places\n", strings.ToUpper(f.name), strings.Join(names, ", "), size,
			strings.Join(places, ", "))
	default:
		return fmt.Sprintf("local HEAD, %s = %d, %d\nlocal function %s(a)\n%s", strings.ToUpper(f.name), len(v.args), size, f.name, read)
	}
}

// line explains the argument.
func (a arg) line() string {
	line := folded(fmt.Sprintf("--   %-10s ", a.name), strings.Fields(a.doc), " ", "\n")
	return strings.ReplaceAll(line, "\n-- ", "\n--              ")
}

// value is the argument as the script takes it.
func (a arg) value(place string) string {
	if a.numeric {
		return "tonumber(" + place + ")"
	}
	return place
}

// goArgs are the structs that hold the arguments of some verbs, and spell them in their order.
func goArgs(file string, some []verb) ([]byte, error) {
	var b, sizes strings.Builder
	one := func(name, doc string, args []arg, batch bool) {
		if len(args) == 0 {
			return
		}
		b.WriteString(goStruct(name, doc, args))
		if batch {
			fmt.Fprintf(&sizes, "\t%sSize = %d\n", name, len(args))
		}
	}
	for _, v := range some {
		one(v.script+"Args", "has the arguments of "+v.script+".lua", v.args, len(v.forms) > 0)
		for _, f := range v.forms {
			one(v.script+title(f.name), "has the arguments of an item of "+v.script+".lua", f.args, true)
		}
	}
	fmt.Fprintf(&b, "\n// How many arguments each is spelt as.\nconst (\n%s)\n", &sizes)
	return goSource(file, "verbs.go", b.String())
}

func goStruct(name, doc string, args []arg) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n// %s %s, which explains them.\ntype %s struct {\n", name, doc, name)
	var values []string
	for i, a := range args {
		b.WriteString(camel(a.name))
		if i+1 < len(args) && args[i+1].typ.typ == a.typ.typ {
			b.WriteString(", ")
		} else {
			b.WriteString(" " + a.typ.typ + "\n")
		}
		values = append(values, fmt.Sprintf(a.typ.write, "a."+camel(a.name)))
	}
	appended := "append(to, " + strings.Join(values, ", ") + ")"
	fmt.Fprintf(&b, "}\n\nfunc (a *%s) appendTo(to []string) []string {\n\treturn %s\n}\n", name, appended)
	return b.String()
}

// camel is a Lua name as a Go one.
func camel(s string) string {
	words := strings.Split(s, "_")
	for i := range words[1:] {
		words[i+1] = title(words[i+1])
	}
	return strings.Join(words, "")
}
