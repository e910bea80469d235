package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// Where returns the fault's file, line and setting, or the name of the variable or flag. It has no
// text of the file but names of known jobs.
func (f Fault) Where(known []jobs.Job) string {
	if f.Name != "" {
		return f.Name
	}
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if path := knownPath(f.Path, reflect.TypeFor[Config](), known); path != "" {
		at += ": " + path
	}
	return at
}

// knownPath returns a path as far as a section has settings of these names: "http.x y" is "http".
// Names of entries are shown where they are an index or the name of a known job.
func knownPath(path string, section reflect.Type, known []jobs.Job) string {
	key := path[:len(path)-len(strings.TrimLeft(path, "abcdefghijklmnopqrstuvwxyz0123456789_"))]
	for section.Kind() == reflect.Pointer {
		section = section.Elem()
	}
	switch {
	case section == jobEntryType:
		return cmp.Or(knownPath(path, reflect.TypeFor[Handler](), known), knownSetting(path))
	case section.Kind() != reflect.Struct:
		return ""
	}
	for _, s := range settings(reflect.New(section).Elem()) {
		if s.key != key {
			continue
		}
		of, rest := s.value.Type(), path[len(key):]
		if label, after, is := strings.Cut(rest, "]"); is && of.Kind() == reflect.Slice && strings.HasPrefix(label, "[") {
			name := label[1:]
			if _, err := strconv.Atoi(name); err != nil && !slices.ContainsFunc(known, func(j jobs.Job) bool { return j.Name == name }) {
				name = "..."
			}
			key, of, rest = key+"["+name+"]", of.Elem(), after
		}
		if under, is := strings.CutPrefix(rest, "."); is {
			return strings.TrimSuffix(key+"."+knownPath(under, of, known), ".")
		} else if rest != "" {
			return "" // no setting, but a key that begins as one
		}
		return key
	}
	return ""
}

// inList matches the place in a list, behind the name of a setting.
var inList = regexp.MustCompile(`^\[[0-9]+\]$`)

// knownSetting is knownPath in an entry under jobs.
func knownSetting(path string) string {
	for p := path; p != ""; p = parentPath(p) {
		if _, known := spec.Named(p); known || spec.IsSection(p) {
			return p + inList.FindString(path[len(p):])
		}
	}
	return ""
}

// keyName returns a key for messages, without a value that became part of it, as in {PASSWORD=x} or
// {token x}.
func keyName(key string) string {
	if i := strings.IndexFunc(key, func(c rune) bool { return c == '=' || c == ':' || unicode.IsSpace(c) }); i >= 0 {
		return spec.Clip(key[:i+1]) + "..."
	}
	return spec.Clip(key)
}

// hasSecret reports whether a section, or any section in it, has a secret setting.
func hasSecret(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // other kinds hold no settings
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return hasSecret(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if _, secret := t.Field(i).Tag.Lookup("secret"); secret || hasSecret(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// nodeKind returns the kind of a node in words, without its contents.
func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return "a single value"
	}
}
