//go:build unix

package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// again is a second run of a line's tick, written right after it with a token of a new server.
func again(lines []line, i int) []line {
	l := lines[i]
	l.no, l.run, l.node, l.token, l.at = len(lines)+1, "again", "n9", l.token+1, l.at.Add(time.Millisecond)
	later := slices.Clone(lines)
	for j := range later {
		if later[j].job == l.job && later[j].token >= l.token {
			later[j].token += 10
		}
	}
	return slices.Insert(later, i+1, l)
}

// TestLossyWindow excuses what lost writes can do, there and nowhere else.
func TestLossyWindow(t *testing.T) {
	near, far := window{second(3), second(5)}, window{second(7), second(9)}
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, ls []line) []line
		lossy window
		want  []kind
	}{
		{"a double, near", func(t *testing.T, ls []line) []line { return again(ls, at(t, ls, "e4", phaseStart)) }, near, nil},
		{"a double, far", func(t *testing.T, ls []line) []line { return again(ls, at(t, ls, "e4", phaseStart)) }, far, []kind{double}},
		{"a run that wrote twice", func(t *testing.T, ls []line) []line {
			ls = again(ls, at(t, ls, "e4", phaseStart))
			ls[at(t, ls, "again", phaseStart)].run = "e4"
			return ls
		}, near, []kind{double}},
		{"a double with an old token", func(t *testing.T, ls []line) []line {
			ls = again(ls, at(t, ls, "e4", phaseStart))
			ls[at(t, ls, "again", phaseStart)].token -= 2
			return ls
		}, near, []kind{regress}},
		{"a double after the next tick", func(t *testing.T, ls []line) []line {
			l := ls[at(t, ls, "e4", phaseStart)]
			l.run, l.token = "again", ls[at(t, ls, "e5", phaseStart)].token+1
			ls = again(ls, at(t, ls, "e5", phaseStart))
			ls[at(t, ls, "again", phaseStart)] = l
			return ls
		}, near, nil},
		{"no line, near", func(t *testing.T, ls []line) []line {
			i := at(t, ls, "e4", phaseStart)
			return slices.Delete(ls, i, i+1)
		}, near, nil},
		{"no line, far", func(t *testing.T, ls []line) []line {
			i := at(t, ls, "e4", phaseStart)
			return slices.Delete(ls, i, i+1)
		}, far, []kind{lost}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := goodDemand()
			d.lossy = tt.lossy
			f := examine(tt.spoil(t, goodLines()), d)
			if !slices.Equal(kinds(f.violations), tt.want) {
				t.Errorf("want %v, got %v", tt.want, f.violations)
			}
			if noted := len(f.twice) + len(f.vanished); noted != 1 && tt.want == nil {
				t.Errorf("%d noted, want it counted", noted)
			}
		})
	}
}

// TestLossyBooks is the same for the records.
func TestLossyBooks(t *testing.T) {
	near, far := window{second(2), second(4)}, window{second(7), second(9)}
	lines := append(goodLines(), line{job: "each-01", tick: second(3), run: "forgotten", phase: phaseStart})
	if a := goodBooks().compare(twoJobs(), lines, near); len(a.violations) != 0 || len(a.unrecorded) != 1 {
		t.Errorf("near: %v, %d noted", a.violations, len(a.unrecorded))
	}
	if a := goodBooks().compare(twoJobs(), lines, far); len(a.violations) != 1 {
		t.Errorf("far: %v", a.violations)
	}
	b := goodBooks()
	b.Rows["each-01"][3].Outcome = jobs.OutcomeAbandoned
	r := rules{stop: second(9), lossy: near}
	if a := b.judge(twoJobs(), r); len(a.violations) != 0 || a.absent[tickID{"each-01", second(3).Unix()}] == "" {
		t.Errorf("abandoned, near: %v, %v", a.violations, a.absent)
	}
	r.lossy = far
	if a := b.judge(twoJobs(), r); len(a.violations) != 1 {
		t.Errorf("abandoned, far: %v", a.violations)
	}
}

// TestGuardsAreThere finds the lines in the module that are there today, and changes nothing else.
func TestGuardsAreThere(t *testing.T) {
	for _, g := range append([]guard{asserting}, guards...) {
		path, err := g.overlay(t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var overlay struct{ Replace map[string]string }
		if err := json.Unmarshal(text, &overlay); err != nil || len(overlay.Replace) != 1 {
			t.Fatalf("%s, %v", text, err)
		}
		for real, changed := range overlay.Replace {
			was, err := os.ReadFile(real)
			if err != nil {
				t.Fatal(err)
			}
			is, err := os.ReadFile(changed)
			if err != nil {
				t.Fatal(err)
			}
			i := strings.Index(string(was), g.is)
			if back := string(is[:i]) + g.is + string(is[i+len(g.without):]); back != string(was) || string(is) == string(was) {
				t.Errorf("%s: more than one line differs, or none", g.name)
			}
		}
	}
}

// TestGuardIsMissed: a verifier that says nothing, or something else, is blind.
func TestGuardIsMissed(t *testing.T) {
	g := guard{name: "g", says: []kind{double, usurper}}
	for _, tt := range []struct {
		found []violation
		blind bool
	}{
		{nil, true},
		{[]violation{{lost, "x"}}, true},
		{[]violation{{lost, "x"}, {usurper, "y"}}, false},
	} {
		r := row{findings: findings{violations: tt.found}}
		g.named(&r)
		if got := len(r.violations) == 1 && r.violations[0].kind == blind; got != tt.blind || !got && len(r.violations) > 0 {
			t.Errorf("%v: %v", tt.found, r.violations)
		}
	}
}

func TestChoose(t *testing.T) {
	of := func(list string, short bool) (out []string) {
		chosen, err := choose(list, short)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range chosen {
			out = append(out, s.name)
		}
		return out
	}
	if got := of("all", false); !slices.Equal(got, names()) {
		t.Errorf("all: %v", got)
	}
	long := []string{"failover", "zombie", "shard", "hang", "move"}
	if got, want := of("all", true), slices.DeleteFunc(names(), func(name string) bool { return slices.Contains(long, name) }); !slices.Equal(got, want) {
		t.Errorf("all, short: %v; want %v", got, want)
	}
	if got := of("control,zombie", true); !slices.Equal(got, []string{"plain", "zombie"}) {
		t.Errorf("two by name: %v", got)
	}
	if _, err := choose("plain,control", false); err == nil {
		t.Error("a scenario is accepted twice")
	}
	if _, err := choose("zombies", false); err == nil {
		t.Error("an unknown name is accepted")
	}
}

// TestFlagsThatDoNothing: who asks for a fault that no chosen scenario has is told so, before anything is built.
func TestFlagsThatDoNothing(t *testing.T) {
	for _, tt := range []struct {
		args string
		ok   bool
	}{
		{"-confirm -scenario failover", true},
		{"-confirm -scenario plain,zombie", true},
		{"-confirm -scenario shard", false},
		{"-confirm", true},
		{"-confirm -short", false},
		{"-without -scenario hang", true},
		{"-without -scenario plain", false},
		{"-without -short", false},
		{"-ignore seal", true},
		{"-ignore seal -scenario move", true},
		{"-ignore seal -scenario kill", false},
		{"-ignore seal -without", false},
	} {
		o, err := parse(strings.Fields(tt.args), io.Discard)
		if err == nil {
			_, _, err = o.choose()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.args, err)
		}
	}
}
