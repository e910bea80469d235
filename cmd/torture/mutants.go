package main

import (
	"slices"
	"time"
)

// mutant spoils a good sink in one way, which the verifier must call by its name. They are
// planted by the unit tests and, in the scenario broken, in a sink that real nodes wrote.
type mutant struct {
	what  string
	want  kind
	plant func(lines []line) []line // gets a copy
}

var mutants = []mutant{
	{"a line removed", lost, func(ls []line) []line { return slices.Delete(ls, len(ls)/2, len(ls)/2+1) }},
	{"a tick run again by another node", double, func(ls []line) []line {
		again := ls[len(ls)/2]
		again.no, again.node, again.run, again.token = len(ls)+1, "ghost", "again", newest(ls)+1
		return append(ls, again)
	}},
	{"one shard of two alone", lost, func(ls []line) []line {
		ls[len(ls)/2].shards = 2
		return ls
	}},
	{"two shards that do not agree on how many they are", mixed, func(ls []line) []line {
		part := ls[len(ls)/2]
		part.no, part.run, part.shard, part.shards = len(ls)+1, "part", 1, 2
		return append(ls, part)
	}},
	{"a start before its tick", early, func(ls []line) []line {
		ls[len(ls)/2].at = ls[len(ls)/2].tick.Add(-time.Millisecond)
		return ls
	}},
	{"a start three seconds after its tick", late, func(ls []line) []line {
		ls[len(ls)/2].at = ls[len(ls)/2].tick.Add(3 * time.Second)
		return ls
	}},
	{"two tokens swapped", regress, func(ls []line) []line {
		a := len(ls) / 2
		b := slices.IndexFunc(ls, func(l line) bool { return l.job == ls[a].job && l.token > ls[a].token })
		ls[a].token, ls[b].token = ls[b].token, ls[a].token
		return ls
	}},
	{"the same token twice", regress, func(ls []line) []line {
		a := len(ls) / 2
		b := slices.IndexFunc(ls, func(l line) bool { return l.job == ls[a].job && l.token > ls[a].token })
		ls[b].token = ls[a].token
		return ls
	}},
	{"a tick between two seconds", phantom, func(ls []line) []line {
		odd := ls[len(ls)-1]
		odd.no, odd.tick, odd.token = len(ls)+1, odd.tick.Add(time.Millisecond), newest(ls)+1
		return append(ls, odd)
	}},
	{"a job that nobody defined", phantom, func(ls []line) []line {
		odd := ls[0]
		odd.no, odd.job = len(ls)+1, "ghost"
		return append(ls, odd)
	}},
}

func newest(lines []line) int64 {
	var t int64
	for _, l := range lines {
		t = max(t, l.token)
	}
	return t
}

// missed are the mutants that verify does not call by their name. Lines must be good ones.
func missed(lines []line, d demand) []mutant {
	var out []mutant
	for _, m := range mutants {
		found := examine(m.plant(slices.Clone(lines)), d).violations
		if !slices.ContainsFunc(found, func(v violation) bool { return v.kind == m.want }) {
			out = append(out, m)
		}
	}
	return out
}
