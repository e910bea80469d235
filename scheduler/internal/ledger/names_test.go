package ledger

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// structs are the arguments of the scripts that take JSON.
var structs = map[string]any{
	"advance": Step{}, "audit": auditArgs{}, "backfill": backfillArgs{}, "feed": feedArgs{}, "unfeed": unfeedArgs{}, "refeed": refeedArgs{}, "begin": beginArgs{}, "cancel": cancelArgs{}, "catalog": catalogArgs{}, "drains": drainsArgs{}, "follow": followArgs{}, "gate": GateStep{}, "incarnate": incarnateArgs{}, "notified": notifiedArgs{},
	"pause": pauseArgs{}, "postpone": postponeArgs{}, "promote": promoteArgs{}, "promoted": promotedArgs{}, "relay": relayArgs{},
	"giveup": giveUpArgs{}, "relayed": relayedArgs{}, "remove": removeArgs{}, "rerun": rerunArgs{}, "reserve": reserveArgs{}, "rewind": rewindArgs{},
	"save": saveArgs{}, "tail": tailArgs{}, "tidy": tidyArgs{}, "trigger": triggerArgs{},
}

// TestArgumentsHaveNames: a script reads exactly the fields of its struct.
func TestArgumentsHaveNames(t *testing.T) {
	for _, s := range scripts {
		args := structs[s.Name()]
		if takes := strings.Contains(source(s.Name()), "-- needs: lib/args"); takes != (args != nil) {
			t.Errorf("%s.lua needs lib/args: %v; it has a struct: %v", s.Name(), takes, args != nil)
		} else if !takes {
			continue
		}
		fields, read := tags(reflect.TypeOf(args)), named(`args`, source(s.Name()))
		slices.Sort(fields)
		if !slices.Equal(read, fields) {
			t.Errorf("%s.lua reads %q, and %T has %q", s.Name(), read, args, fields)
		}
	}
}

// tags are the names of a struct's fields in JSON.
func tags(args reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(args) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// named are the fields of a table that a script reads, each once, sorted.
func named(table, text string) (names []string) {
	for _, m := range regexp.MustCompile(`\b`+table+`\.(\w+)`).FindAllStringSubmatch(code(text), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestKeysHaveNames: a script names exactly the keys that it uses; all are keys of the ledger.
func TestKeysHaveNames(t *testing.T) {
	k := partitionKeys("ns", 0)
	known := append(k.all(), k.tag+"history", k.tag+"histories", k.tag+"control", k.tag+"drains", k.tag+"audit", k.tag+"notified",
		k.tag+"catalog", k.tag+"catalogat", k.tag+"catalogdropped")
	for _, s := range scripts {
		_, line, has := strings.Cut(source(s.Name()), keysMark)
		if !has {
			continue
		}
		line, _, _ = strings.Cut(line, "\n")
		names := strings.Fields(line)
		slices.Sort(names)
		if used := named(`k`, strings.ReplaceAll(s.Source(), "local k = {", "")); !slices.Equal(used, names) {
			t.Errorf("%s.lua uses the keys %q, and gives names to %q", s.Name(), used, names)
		}
		for _, name := range names {
			if !slices.Contains(known, k.tag+name) {
				t.Errorf("%s.lua: no key is called %s", s.Name(), name)
			}
		}
	}
}
