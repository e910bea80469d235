//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// unchanged is how many jobs of 52 no deploy touches, beside those that last.
const unchanged = 23

// deploys are what is deployed, one after another; the last one is the rollback.
var deploys = []struct {
	name, revision string
	of             int // whose settings it has
	back           bool
}{
	{"a", "r1", 0, false}, // as it was
	{"b", "r2", 1, false}, // another revision and ttl
	{"c", "r3", 2, false}, // other schedules, ttl and shard counts
	{"d", "r4", 3, false}, // and others again
	{"e", "r3", 2, true},  // rolled back to c
}

const (
	even  = "*/2 * * * * *"
	odd   = "1-59/2 * * * * *"
	third = "*/3 * * * * *"
)

// timetables are, by version, those of jobs whose schedule a deploy changes.
var timetables = [][]string{
	{even, even, odd, always},
	{always, always, even, odd},
	{third, third, always, even},
}

// versionJobs are 52 jobs as version v of the four has them: a quarter with other schedules from the third version on,
// others with a ttl of each version's own, and others split into 1, 4 and 2.
func versionJobs(v int) []job {
	list := everySecond(unchanged)
	for i := range 13 {
		list = append(list, job{name: fmt.Sprintf("plan-%02d", i+1), schedule: timetables[i%len(timetables)][v]})
	}
	for i := range 6 {
		list = append(list, job{name: fmt.Sprintf("ttl-%02d", i+1), schedule: always, ttl: time.Duration(4+v) * time.Second})
	}
	for i := range 6 {
		list = append(list, job{name: fmt.Sprintf("part-%02d", i+1), schedule: always, shards: []int{1, 1, 4, 2}[v]})
	}
	return append(list, commands()...)
}

// commands are jobs that last, which an HTTP call to the sink does not. They have time for it: on a busy machine a
// command alone may take a second.
func commands() []job {
	list := []job{slow("slow-1"), slow("slow-2"), slow("slow-3"), slow("slow-4")}
	for i := range list {
		list[i].command = true
	}
	return list
}

// backward is an older definition that counted again after a newer one, or one that never counted.
const backward judge.Kind = "BACK"

// differs is all that a deploy may change of a job, as text.
func (j job) differs() string { return fmt.Sprint(j.schedule, "; ", j.ttl, "; ", j.shards) }

// succession checks at the sink that each definition of a job, once it had given way to another, ran no more: runs are
// looked at in the order of their tokens. A node's name begins with its term's; extra names other nodes, and whose
// configuration they had. And it checks that the last term's definition came to count.
func succession(name string, terms []term, extra map[string]string, lines []line) []judge.Finding {
	var path, split []string
	for _, t := range terms {
		path, split = append(path, t.of(name).differs()), append(split, fmt.Sprint(max(1, t.of(name).shards), " shards"))
	}
	of := func(l line) string {
		for i, t := range terms {
			if strings.HasPrefix(l.node, t.name) || strings.HasPrefix(extra[l.node], t.name) {
				return path[i]
			}
		}
		return "of nobody"
	}
	own := slices.DeleteFunc(starts(lines), func(l line) bool { return l.job != name })
	slices.SortStableFunc(own, func(a, b line) int { return cmp.Compare(a.token, b.token) })
	wrong := follows(backward, path, own, of)
	slices.SortStableFunc(own, func(a, b line) int { return a.tick.Compare(b.tick) })
	return append(wrong, follows(backward, split, own, func(l line) string { return fmt.Sprint(l.shards, " shards") })...)
}

// follows checks that what lines of a job tell goes along a path, never back, and to its end.
func follows(k judge.Kind, path []string, lines []line, what func(line) string) []judge.Finding {
	at := 0
	for _, l := range lines {
		i := slices.Index(path[at:], what(l))
		if i < 0 {
			return []judge.Finding{judge.NewFinding(k, l.job, l.tick, "%s, by what (%s) had given way to another (%s)", l, what(l), path[at])}
		}
		at += i
	}
	if len(lines) > 0 && path[at] != path[len(path)-1] {
		last := lines[len(lines)-1]
		return []judge.Finding{judge.NewFinding(k, last.job, last.tick, "%s is the last run, by %s; %s never came to count", last, path[at], path[len(path)-1])}
	}
	return nil
}
