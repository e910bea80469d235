// Package doctor finds the problems of a namespace, its nodes, its jobs and its Redis, in words: the
// fault, and its remedy.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severities of a Problem.
const (
	// Warning is a possible harm of a later day, or perhaps intended.
	Warning = "warning"
	// Error is a harm now, or at the next crash: an operator must act.
	Error = "error"
)

// Kinds of a Problem's subject.
const (
	onJob        = "job"
	onNode       = "node"
	onServer     = "server"
	onKey        = "key"
	onGeneration = "generation"
	onNamespace  = "namespace"
)

// Problem is a fault, in words.
type Problem struct {
	Code     string `json:"code"`     // for programs: "redis_evicts", "job_no_node"
	Severity string `json:"severity"` // warning or error
	Kind     string `json:"kind"`     // of the subject: job, node, server, key, generation or namespace
	On       string `json:"on"`       // the subject's name; "" of many
	Text     string `json:"text"`     // the fault
	Cure     string `json:"cure"`     // the remedy
	// Count is 0, or how many more of the same code and severity there are, which are not listed
	// one by one.
	Count int `json:"count,omitempty"`
}

// listedMost is how many problems of a code and severity are listed one by one.
const listedMost = 20

// list collects problems. The zero value has none.
type list struct {
	all  []Problem
	more map[sort]int // how many there are of a sort
}

type sort struct{ code, severity string }

// add adds a problem, or counts it when enough of its sort are listed.
func (l *list) add(p Problem) {
	if l.more == nil {
		l.more = make(map[sort]int)
	}
	s := sort{p.Code, p.Severity}
	if l.more[s]++; l.more[s] <= listedMost {
		l.all = append(l.all, p)
	}
}

// has reports whether a problem of one of these codes was added.
func (l *list) has(codes ...string) bool {
	return slices.ContainsFunc(l.all, func(p Problem) bool { return slices.Contains(codes, p.Code) })
}

// takesNoWrites reports whether a server was found that takes no writes.
func (l *list) takesNoWrites() bool { return l.has("redis_replica", "redis_full", "redis_disk") }

// problems are the errors, then the warnings, each in the order in which their sorts were found
// first. A problem with a count follows the listed problems of its sort.
func (l *list) problems() []Problem {
	all, first := slices.Clone(l.all), make(map[sort]int)
	for k, p := range l.all {
		s := sort{p.Code, p.Severity}
		if _, there := first[s]; !there {
			first[s] = k
			if n := l.more[s] - listedMost; n > 0 {
				all = append(all, Problem{Code: p.Code, Severity: p.Severity, Kind: p.Kind, Text: fmt.Sprintf("and %d more like these", n), Cure: p.Cure, Count: n})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), // which happens to be the right order
			cmp.Compare(first[sort{a.Code, a.Severity}], first[sort{b.Code, b.Severity}]))
	})
	return all
}
