package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// backward is an older definition that counted again after a newer one, or one that never counted.
const backward kind = "BACK"

// blurred is how near to the replacement of a schedule a tick may be of either.
const blurred = 50 * time.Millisecond

// term is a configuration that nodes are deployed with, and its time.
type term struct {
	name string // the nodes' names begin with it
	jobs []job
	// switched is when its definitions may take the place of those before; that of the first term is not looked at.
	switched window
	// back says that it is a rollback, and waits is when then not all of its nodes claim again what it changes.
	back  bool
	waits window
}

// of is a term's job of that name.
func (t term) of(name string) job {
	return t.jobs[slices.IndexFunc(t.jobs, func(j job) bool { return j.name == name })]
}

// definition is all that a deploy may change of a job, as text.
func (j job) definition() string { return fmt.Sprint(j.schedule, "; ", j.ttl, "; ", j.shards) }

// gaveWay says that a row ends a definition.
func gaveWay(row ledger.Row) bool { return row.Ranged && row.Outcome == jobs.OutcomeSuperseded }

// leftAlone says of each row whether it ends a definition that gave way to one with the same schedule: what it notes is in
// force afterwards as well, and the cursor stood still. last is the schedule of now.
func leftAlone(rows []ledger.Row, last string) []bool {
	left := make([]bool, len(rows))
	for i, row := range slices.Backward(rows) {
		if gaveWay(row) {
			left[i] = row.Count == 0 && row.Prev == row.Next && row.Note == last
			last = row.Note
		}
	}
	return left
}

// inForce is a job as several terms, one after another, have it. The records say when one schedule gave way to the next, the
// terms when that may have been: once for each that differs, in their order, and never for one that does not.
func inForce(name string, terms []term, rows []ledger.Row) (j job, switched []window, wrong []violation) {
	steps := []job{terms[0].of(name)}
	j = steps[0]
	for i, t := range terms[1:] {
		now := t.of(name)
		if t.back && now.definition() != terms[i].of(name).definition() {
			j.waits = append(j.waits, t.waits)
		}
		if now.schedule != steps[len(steps)-1].schedule {
			steps, switched = append(steps, now), append(switched, t.switched)
		}
	}
	j.schedule = steps[len(steps)-1].schedule
	var at []time.Time
	left := leftAlone(rows, j.schedule)
	for i, row := range rows {
		if gaveWay(row) && !left[i] {
			at = append(at, time.UnixMilli(row.At))
		}
	}
	accuse := func(format string, args ...any) {
		wrong = append(wrong, violation{backward, name + ": " + fmt.Sprintf(format, args...)})
	}
	if len(at) != len(switched) {
		accuse("its schedule was replaced %d times as recorded, and %d deploys changed it", len(at), len(switched))
		at = at[:min(len(at), len(switched))]
	}
	for i, t := range at {
		if !switched[i].holds(t) {
			accuse("its schedule became %q at %s, and that deploy went on from %s to %s", steps[i+1].schedule, stamp(t), stamp(switched[i].from), stamp(switched[i].to))
		}
	}
	step := func(t time.Time) job {
		n := 0
		for n < len(at) && at[n].Before(t) {
			n++
		}
		return steps[n]
	}
	near := func(second int64) (before, after bool) {
		t := time.Unix(second, 0)
		return step(t.Add(-blurred)).due(second), step(t.Add(blurred)).due(second)
	}
	j.due = func(second int64) bool { a, b := near(second); return a && b }
	j.may = func(second int64) bool { a, b := near(second); return a || b }
	return j, switched, wrong
}

// succession checks at the sink that each definition of a job, once it had given way to another, ran no more: runs are
// looked at in the order of their tokens. A node's name begins with its term's; extra names other nodes, and whose
// configuration they had. And it checks that the last term's definition came to count.
func succession(name string, terms []term, extra map[string]string, lines []line) []violation {
	var path, split []string
	for _, t := range terms {
		path, split = append(path, t.of(name).definition()), append(split, fmt.Sprint(max(1, t.of(name).shards), " shards"))
	}
	of := func(node string) string {
		for i, t := range terms {
			if strings.HasPrefix(node, t.name) || strings.HasPrefix(extra[node], t.name) {
				return path[i]
			}
		}
		return "of nobody"
	}
	var own []line
	for _, l := range starts(lines) {
		if l.job == name {
			own = append(own, l)
		}
	}
	slices.SortStableFunc(own, func(a, b line) int { return cmp.Compare(a.token, b.token) })
	wrong := follows(path, own, func(l line) string { return of(l.node) })
	slices.SortStableFunc(own, func(a, b line) int { return a.tick.Compare(b.tick) })
	return append(wrong, follows(split, own, func(l line) string { return fmt.Sprint(l.shards, " shards") })...)
}

// follows checks that what lines tell goes along a path, never back, and to its end.
func follows(path []string, lines []line, what func(line) string) []violation {
	at := 0
	for _, l := range lines {
		i := slices.Index(path[at:], what(l))
		if i < 0 {
			return []violation{{backward, fmt.Sprintf("%s, by a definition (%s) that had given way to another (%s)", l, what(l), path[at])}}
		}
		at += i
	}
	if len(lines) > 0 && path[at] != path[len(path)-1] {
		return []violation{{backward, fmt.Sprintf("%s is the last run, by %s; %s never came to count", lines[len(lines)-1], path[at], path[len(path)-1])}}
	}
	return nil
}
