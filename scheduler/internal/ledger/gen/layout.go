package main

import (
	"fmt"
	"slices"
	"strings"
)

// record is the layout of one kind of packed text: fields parted by '|', behind the mark that names
// its format.
type record struct {
	name    string // as the page and the Lua functions have it
	lua     string // the file of codec with its Lua codec; "" when no script reads or writes it
	mark    string // version of the format, and what else names the kind
	key     string // where it is stored
	doc     string // one sentence
	absent  string // the record that an absent text stands for; "" for none
	typ     string // the Go struct that it is read into, which is declared beside its users
	writes  string // the Go method that writes it; "" when only scripts do
	unread  bool   // no script reads it
	example string
	fields  []field
	views   []view
}

// field is one place of a record.
type field struct {
	name string // in Lua, and on the page
	kind kind
	// into is the Go field; several names, with commas, for a kind that holds several values. "" is
	// read and dropped.
	into  string
	doc   string
	since int // version of the format that brought it; 0 for the first
}

// kind is what a field holds.
type kind struct {
	class string // as a Lua pattern
	words string // on the page
	read  string // a method of fields that reads it
	write string // what spells a Go value, with %s for it
}

var (
	number   = kind{`%d+`, "number", "int()", "Spell(%s)"}
	optional = kind{`%d*`, "number, or empty", "int()", "SpellOrNone(%s)"}
	small    = kind{`%d+`, "number", "small()", "strconv.Itoa(%s)"}
	word     = kind{`%l+`, "word", "text()", "%s"}
	text     = kind{`[^|]*`, "text", "text()", "%s"}
	tidied   = kind{`[^|]*`, "text", "text()", "Plain(%s)"} // '|' and line breaks are replaced when it is written
	name     = kind{`[^|]+`, "text, not empty", "text()", "%s"}
	window   = kind{`[%d,]*`, "'from,to', or empty", "window()", ""}
	attempts = kind{`[%d,]*`, "'until,attempt', or empty", "attempts()", ""}
	counts   = kind{`[^|]*`, "'word=number', with commas", "counts()", ""}
	tally    = kind{`[^|]*`, "'word=number', with commas", "tally()", ""}
	going    = kind{`[^|]*`, "'tick=run', with commas", "going()", ""}
	flag     = kind{`1?`, "'1', or empty", "flag()", "SpellFlag(%s)"}
	overlap  = kind{`[sqra]`, "letter", "text()", "%s"}
	param    = kind{`[^|]*`, "text, escaped as in a URL", "param()", "url.QueryEscape(%s)"}
	outcome  = kind{`[^|]*`, "outcome", "outcome()", "%s.String()"}
	rest     = kind{`.*`, "text to the end, '|' too", "text()", "%s"}
	words    = kind{`.*`, "text to the end", "text()", "Plain(%s)"}
	payload  = kind{`.*`, "bytes to the end, '|' too", "bytes()", "string(%s)"}
	instant  = kind{`%d+`, "number", "instant()", "Spell(%s.UnixMilli())"}
)

// letter is a field that holds one letter of some.
func letter(of string) kind {
	return kind{class: "[" + of + "]", words: "letter", read: "oneOf(\"" + strings.Join(strings.Split(of, ""), `", "`) + "\")"}
}

// view is a Lua pattern that reads some fields of a record and, for speed, no more than is needed
// of it.
type view struct {
	name   string
	doc    string
	fields []string          // captured, in the order of the layout
	fixed  map[string]string // other patterns than their own for some fields
}

// pattern is the Lua pattern of a whole record, with a capture for each field.
func (r record) pattern() string {
	var b strings.Builder
	b.WriteString("^" + r.mark)
	for _, f := range r.fields {
		b.WriteString("|(" + f.kind.class + ")")
	}
	return b.String() + "$"
}

// viewPattern is the Lua pattern of a view: up to the last field that it names.
func (r record) viewPattern(v view) string {
	var b strings.Builder
	b.WriteString("^" + r.mark)
	left := len(v.fields) + len(v.fixed)
	for i, f := range r.fields {
		class := f.kind.class
		if slices.Contains(v.fields, f.name) {
			class, left = "("+class+")", left-1
		} else if value, is := v.fixed[f.name]; is {
			class, left = value, left-1
		}
		b.WriteString("|" + class)
		if left == 0 && i == len(r.fields)-1 {
			return b.String() + "$"
		} else if left == 0 {
			return b.String() + "|"
		}
	}
	panic(fmt.Sprintf("view %s names a field that record %s has not", v.name, r.name))
}
