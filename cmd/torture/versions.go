package main

import (
	"fmt"
	"time"
)

// unchanged is how many jobs of 52 no deploy touches, beside those that last.
const unchanged = 23

// versions are what is deployed, one after another; the last one is the rollback.
var versions = []struct {
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

// timetable is a schedule, and the verifier's own idea of it.
type timetable struct {
	text string
	due  func(second int64) bool
}

var (
	always = timetable{"* * * * * *", func(int64) bool { return true }}
	even   = timetable{"*/2 * * * * *", func(s int64) bool { return s%2 == 0 }}
	odd    = timetable{"1-59/2 * * * * *", func(s int64) bool { return s%2 == 1 }}
	third  = timetable{"*/3 * * * * *", func(s int64) bool { return s%60%3 == 0 }}
)

// timetables are, by version, those of jobs whose schedule a deploy changes.
var timetables = [][]timetable{
	{even, even, odd, always},
	{always, always, even, odd},
	{third, third, always, even},
}

// versionJobs are 52 jobs as version v of the four has them: a quarter with other schedules from the third version on,
// others with a ttl of each version's own, and others split into 1, 4 and 2.
func versionJobs(v int) []job {
	list := everySecond(unchanged)
	add := func(name string, i int) *job {
		list = append(list, job{name: fmt.Sprintf("%s-%02d", name, i+1), schedule: always.text, due: always.due})
		return &list[len(list)-1]
	}
	for i := range 13 {
		t := timetables[i%len(timetables)][v]
		j := add("plan", i)
		j.schedule, j.due = t.text, t.due
	}
	for i := range 6 {
		add("ttl", i).ttl = time.Duration(4+v) * time.Second
	}
	for i := range 6 {
		add("part", i).shards = []int{1, 1, 4, 2}[v]
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
