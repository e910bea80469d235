//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/guard"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// lack is what nodes are built without: guards that are marked in the source, see cmd/mutants.
type lack struct {
	name  string
	marks []string
	// scenario is the one that must find out, by saying one of these, when all nodes lack the guards, or the one that is named.
	scenario string
	says     []judge.Kind
	only     string
}

// asserting is that nodes tell a new server of their runs; without it the server is trusted at once.
var asserting = lack{name: "assert", marks: []string{"grants-wait", "runs-asserted", "ends-asserted"}}

// lacks are what -ignore takes out.
var lacks = []lack{
	// An old node takes its turn, whoever lives.
	{name: "revision", marks: []string{"older-yields"}, scenario: "deploy", says: []judge.Kind{backward}},
	// All generations have one definition.
	{name: "generation", marks: []string{"generation-apart"}, scenario: "promote", says: []judge.Kind{usurper}},
	// A tick of a dead node waits until its name has left the roster.
	{name: "late", marks: []string{"late-ticks"}, scenario: "kill", says: []judge.Kind{judge.KindLate}},
	// What has moved is claimed where it was.
	{name: "seal", marks: []string{"claim-gate", "define-gate"}, scenario: "move", says: []judge.Kind{judge.KindDouble, stray}, only: latecomer},
}

// lackOf finds one by its name.
func lackOf(name string) (lack, error) {
	i := slices.IndexFunc(lacks, func(l lack) bool { return l.name == name })
	if i < 0 {
		return lack{}, fmt.Errorf("-ignore %s: there is no such; there are %s", name, strings.Join(ignorable(), ", "))
	}
	return lacks[i], nil
}

func ignorable() []string {
	var out []string
	for _, l := range lacks {
		out = append(out, l.name)
	}
	return out
}

// overlay writes an overlay for go build in which the guards are left out, and returns its path.
func (l lack) overlay(dir string) (string, error) {
	root, err := guard.Root()
	if err != nil {
		return "", err
	}
	marks, err := guard.Find(root)
	if err != nil {
		return "", err
	}
	marks = slices.DeleteFunc(marks, func(m guard.Mark) bool { return !slices.Contains(l.marks, m.Name) })
	if len(marks) != len(l.marks) {
		return "", fmt.Errorf("without %s: of the guards %v the source marks only %v; mend cmd/torture/without.go", l.name, l.marks, marks)
	}
	return guard.Overlay(root, dir, "without-"+l.name, marks...)
}

// named turns what a scenario found without the guards round: it is well when it was said what must be.
func (l lack) named(r *row) {
	counts := map[judge.Kind]int{}
	for _, f := range r.findings {
		counts[f.Kind]++
	}
	found := r.findings
	r.findings = nil
	for _, k := range l.says {
		if i := slices.IndexFunc(found, func(f judge.Finding) bool { return f.Kind == k }); i >= 0 {
			r.notes = append(r.notes, fmt.Sprintf("without %s it was said %d times: %s", l.name, counts[k], found[i]))
			return
		}
	}
	r.findings = []judge.Finding{judge.NewFinding(blind, l.name, time.Time{}, "without it nothing of %v was said, but: %v", l.says, counts)}
}
