package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// twoTerms are one job every second, then every second second, and one that no deploy touches, from second 10 on.
func twoTerms() []term {
	each := func(int64) bool { return true }
	two := func(s int64) bool { return s%2 == 0 }
	return []term{
		{name: "a", jobs: []job{{name: "plan", schedule: "all", due: each}, {name: "same", schedule: "all", due: each}}},
		{name: "b", jobs: []job{{name: "plan", schedule: "even", due: two}, {name: "same", schedule: "all", due: each}}, switched: window{second(10), second(14)}},
	}
}

// replacedAt is the record of a schedule that was replaced.
func replacedAt(at time.Time) ledger.Row {
	return ledger.Row{Job: "plan", Ranged: true, Outcome: jobs.OutcomeSuperseded, At: at.UnixMilli(), Note: "all", Next: 1000}
}

// sameAt is the record of a definition that gave way to one with the same schedule.
func sameAt(at time.Time, schedule string) ledger.Row {
	row := replacedAt(at)
	row.Prev, row.Next, row.Note = 1000, 1000, schedule
	return row
}

func TestInForce(t *testing.T) {
	half := 500 * time.Millisecond
	for _, tt := range []struct {
		name, job string
		rows      []ledger.Row
		wrong     int
		due, may  []int // of seconds 9 to 14
	}{
		{"replaced between two ticks", "plan", []ledger.Row{replacedAt(second(11).Add(half))}, 0, []int{9, 10, 11, 12, 14}, []int{9, 10, 11, 12, 14}},
		{"replaced at a tick that only one has", "plan", []ledger.Row{replacedAt(second(11).Add(time.Millisecond))}, 0, []int{9, 10, 12, 14}, []int{9, 10, 11, 12, 14}},
		{"too early", "plan", []ledger.Row{replacedAt(second(9).Add(half))}, 1, []int{9, 10, 12, 14}, []int{9, 10, 12, 14}},
		{"too late", "plan", []ledger.Row{replacedAt(second(14).Add(half))}, 1, []int{9, 10, 11, 12, 13, 14}, []int{9, 10, 11, 12, 13, 14}},
		{"never", "plan", nil, 1, []int{9, 10, 11, 12, 13, 14}, []int{9, 10, 11, 12, 13, 14}},
		{"there and back", "plan", []ledger.Row{replacedAt(second(11).Add(half)), replacedAt(second(12).Add(half))}, 1, []int{9, 10, 11, 12, 14}, []int{9, 10, 11, 12, 14}},
		{"other settings before and after", "plan", []ledger.Row{sameAt(second(9), "all"), replacedAt(second(11).Add(half)), sameAt(second(13), "even")}, 0, []int{9, 10, 11, 12, 14}, []int{9, 10, 11, 12, 14}},
		{"other settings that go back", "plan", []ledger.Row{replacedAt(second(11).Add(half)), sameAt(second(13), "all")}, 1, []int{9, 10, 11, 12, 14}, []int{9, 10, 11, 12, 14}},
		{"other settings", "same", []ledger.Row{sameAt(second(11), "all")}, 0, []int{9, 10, 11, 12, 13, 14}, []int{9, 10, 11, 12, 13, 14}},
		{"untouched", "same", nil, 0, []int{9, 10, 11, 12, 13, 14}, []int{9, 10, 11, 12, 13, 14}},
		{"untouched, and replaced all the same", "same", []ledger.Row{replacedAt(second(11).Add(half))}, 1, []int{9, 10, 11, 12, 13, 14}, []int{9, 10, 11, 12, 13, 14}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, _, wrong := inForce(tt.job, twoTerms(), tt.rows)
			var due, may []int
			for n := 9; n <= 14; n++ {
				if j.due(second(n).Unix()) {
					due = append(due, n)
				}
				if j.mayRun(second(n).Unix()) {
					may = append(may, n)
				}
			}
			if len(wrong) != tt.wrong || !slices.Equal(due, tt.due) || !slices.Equal(may, tt.may) {
				t.Errorf("due %v, may %v, %v", due, may, wrong)
			}
		})
	}
}

// TestRollbackWaits: only jobs that a rollback changes may wait for it.
func TestRollbackWaits(t *testing.T) {
	terms := twoTerms()
	terms[1].back, terms[1].waits = true, window{second(10), second(17)}
	j, _, _ := inForce("plan", terms, []ledger.Row{replacedAt(second(11))})
	if !j.waiting(second(12)) || j.waiting(second(18)) {
		t.Error("a changed job waits then, and no longer")
	}
	if j, _, _ := inForce("same", terms, nil); j.waiting(second(12)) {
		t.Error("what is unchanged waits")
	}
}

func TestSuccession(t *testing.T) {
	terms := append(twoTerms(), term{name: "c", jobs: []job{{name: "plan", schedule: "even", shards: 2}, {name: "same", schedule: "all"}}})
	run := func(tick, token int, node string, shard, shards int) line {
		return line{job: "plan", tick: second(tick), token: int64(token), node: node, run: fmt.Sprint("r", token), phase: phaseStart, shard: shard, shards: shards}
	}
	good := []line{run(0, 1, "a1", 0, 1), run(1, 2, "b1", 0, 1), run(2, 3, "c1", 0, 2), run(2, 4, "c2", 1, 2)}
	for _, tt := range []struct {
		name  string
		lines []line
		wrong int
	}{
		{"one after another", good, 0},
		{"written in another order", []line{good[1], good[0], good[3], good[2]}, 0},
		{"the oldest again", slices.Insert(slices.Clone(good), 2, run(1, 9, "a1", 0, 1)), 1},
		{"an old one that came back", append(slices.Clone(good), run(3, 9, "old", 0, 2)), 1},
		{"an old number of shards again", append(slices.Clone(good), run(3, 9, "c1", 0, 1)), 1},
		{"the last never", good[:2], 2}, // neither its definition nor its shards
		{"a node of nobody", append(slices.Clone(good), run(3, 9, "x1", 0, 2)), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if wrong := succession("plan", terms, map[string]string{"old": "b"}, tt.lines); len(wrong) != tt.wrong {
				t.Errorf("want %d, got %v", tt.wrong, wrong)
			}
		})
	}
	same := []line{{job: "same", token: 1, node: "c1", phase: phaseStart, shards: 1}, {job: "same", token: 2, node: "a1", phase: phaseStart, shards: 1}}
	if wrong := succession("same", terms, nil, same); len(wrong) > 0 {
		t.Errorf("what is unchanged anybody may run: %v", wrong)
	}
}

// TestSupersededTicks holds the record of a replaced schedule against when that may have been.
func TestSupersededTicks(t *testing.T) {
	row := passedOver(5, 5, jobs.OutcomeSuperseded)
	for _, tt := range []struct {
		name     string
		at       time.Time
		switched window
		waits    window
		want     int // violations
	}{
		{"in a deploy", second(6), window{second(4), second(8)}, window{}, 0},
		{"in none", second(6), window{}, window{}, 1},
		{"after it", second(9), window{second(4), second(8)}, window{}, 1},
		{"long after the tick was due", second(8), window{second(4), second(8)}, window{}, 1},
		{"that, of a job that waits for a rollback", second(8), window{second(4), second(8)}, window{second(5), second(9)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := goodBooks()
			row := row
			row.At = tt.at.UnixMilli()
			b.Rows["each-01"][5] = row
			all := twoJobs()
			all[0].waits = []window{tt.waits}
			a := b.judge(all, rules{switched: map[string][]window{"each-01": {tt.switched}}})
			if len(a.violations) != tt.want {
				t.Errorf("want %d, got %v", tt.want, a.violations)
			}
			if absent := a.absent[tickID{"each-01", second(5).Unix()}] != ""; absent != (tt.want == 0) {
				t.Errorf("absent: %v", a.absent)
			}
		})
	}
}

// TestSameScheduleMayGiveWayAtAnyTime: where a definition changes and its schedule does not, no deploy of schedules need explain it.
func TestSameScheduleMayGiveWayAtAnyTime(t *testing.T) {
	for note, want := range map[string]int{"all": 0, "another one's": 1} {
		b, all := goodBooks(), twoJobs()
		all[0].schedule = "all"
		row := sameAt(second(5), note)
		row.Job = "each-01"
		b.Rows["each-01"] = slices.Insert(b.Rows["each-01"], 5, row)
		if a := b.judge(all, rules{}); len(a.violations) != want {
			t.Errorf("noted %q: want %d, got %v", note, want, a.violations)
		}
	}
}

// shardLines are ticks 0 to 3 of a job in two shards, which write in turns.
func shardLines() []line {
	var lines []line
	for n := range 4 {
		for i := range 2 {
			shard := (i + n) % 2
			lines = append(lines, line{no: 2*n + i + 1, job: "part", tick: second(n), token: int64(100 + 10*n + shard), node: "n1", run: fmt.Sprint(n, ".", shard),
				phase: phaseStart, at: second(n).Add(time.Millisecond), shard: shard, shards: 2})
		}
	}
	return lines
}

func TestShards(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(ls []line) []line
		want  []kind
	}{
		{"all there", func(ls []line) []line { return ls }, nil},
		{"one is missing", func(ls []line) []line { return slices.Delete(ls, 3, 4) }, []kind{lost}},
		{"one ran twice", func(ls []line) []line {
			again := ls[3]
			again.run, again.token = "again", 999
			return append(ls, again)
		}, []kind{double, regress}}, // its token is out of place too
		{"one of three", func(ls []line) []line {
			ls[3].shards = 3
			return ls
		}, []kind{lost, mixed}},
		{"tokens of one shard do not grow", func(ls []line) []line {
			ls[4].token = 0
			return ls
		}, []kind{regress, regress}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := demand{jobs: []job{{name: "part", due: func(int64) bool { return true }}}, must: window{second(0), second(3)}, stop: second(4)}
			if got := kinds(examine(tt.spoil(shardLines()), d).violations); !slices.Equal(got, tt.want) {
				t.Errorf("want %v, got %v", tt.want, got)
			}
		})
	}
}
