package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// epoch is the first second of the tests' window; even, so that the slow job ticks then.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// twoJobs are a job that ticks every second and one whose runs last, every two seconds.
func twoJobs() []job {
	return []job{everySecond(1)[0], {name: "slow", due: func(s int64) bool { return s%2 == 0 }, lasts: true}}
}

// goodLines are what three nodes write in ten seconds when all is well, each start 20 ms after
// its tick.
func goodLines() []line {
	var lines []line
	add := func(l line) {
		l.no = len(lines) + 1
		lines = append(lines, l)
	}
	for n := range 10 {
		each := line{job: "each-01", tick: second(n), token: int64(1000 + n), node: fmt.Sprintf("n%d", n%3+1), run: fmt.Sprintf("e%d", n),
			phase: phaseStart, at: second(n).Add(20 * time.Millisecond), shards: 1, label: "-"}
		if n%2 == 1 {
			add(line{job: "slow", tick: second(n - 1), token: int64(5000 + n - 1), node: "n2", run: fmt.Sprintf("s%d", n-1),
				phase: phaseEnd, at: second(n).Add(10 * time.Millisecond), shards: 1, label: "-"})
		}
		add(each)
		if n%2 == 0 {
			add(line{job: "slow", tick: second(n), token: int64(5000 + n), node: "n2", run: fmt.Sprintf("s%d", n),
				phase: phaseStart, at: second(n).Add(20 * time.Millisecond), shards: 1, label: "-"})
		}
	}
	return lines
}

func goodDemand() demand {
	return demand{
		jobs: twoJobs(), must: window{second(0), second(9)}, stop: second(9).Add(700 * time.Millisecond), within: 2 * time.Second,
		absent: map[tickID]string{}, abandoned: map[string]bool{},
	}
}

// at is the index of a run's line.
func at(t *testing.T, lines []line, run, phase string) int {
	t.Helper()
	i := slices.IndexFunc(lines, func(l line) bool { return l.run == run && l.phase == phase })
	if i < 0 {
		t.Fatalf("no line of run %s %s", run, phase)
	}
	return i
}

func TestGoodSinkHolds(t *testing.T) {
	f := examine(goodLines(), goodDemand())
	if len(f.violations) > 0 || f.wanted != 15 || f.ran != 15 || f.stale != 0 || len(f.lags) != 15 {
		t.Errorf("%+v", f)
	}
	if p50 := quantile(f.lags, 0.5); p50 != 20*time.Millisecond {
		t.Errorf("p50 %s", p50)
	}
}

// TestMutantsAreNamed plants every fault of mutants.go, and wants each name.
func TestMutantsAreNamed(t *testing.T) {
	good := slices.DeleteFunc(goodLines(), func(l line) bool { return l.job == "slow" })
	d := goodDemand()
	d.jobs = d.jobs[:1]
	for _, m := range missed(good, d) {
		t.Errorf("%s: the verifier did not say %s", m.what, m.want)
	}
}

// planted faults and everything that the verifier must say of them, no more and no less.
var planted = []struct {
	name  string
	spoil func(t *testing.T, lines []line, d *demand) []line
	want  []kind
}{
	{"a tick ran twice", func(t *testing.T, ls []line, _ *demand) []line {
		again := ls[at(t, ls, "e4", phaseStart)]
		again.run, again.token, again.no = "again", 1009, len(ls)+1
		ls[at(t, ls, "e9", phaseStart)].token = 1010
		return slices.Insert(ls, len(ls)-1, again)
	}, []kind{double, regress}}, // its token is out of place too, between the ticks around it
	{"a tick is lost", func(t *testing.T, ls []line, _ *demand) []line {
		i := at(t, ls, "e4", phaseStart)
		return slices.Delete(ls, i, i+1)
	}, []kind{lost}},
	{"the last tick is lost", func(t *testing.T, ls []line, _ *demand) []line {
		i := at(t, ls, "e9", phaseStart)
		return slices.Delete(ls, i, i+1)
	}, []kind{lost}},
	{"a whole job is lost", func(_ *testing.T, ls []line, _ *demand) []line {
		return slices.DeleteFunc(ls, func(l line) bool { return l.job == "slow" })
	}, slices.Repeat([]kind{lost}, 5)},
	{"a tick before the window, with a hole after it", func(_ *testing.T, ls []line, d *demand) []line {
		d.must.from = second(5)
		return slices.DeleteFunc(ls, func(l line) bool { return l.run == "e2" })
	}, []kind{lost}},
	{"a tick is lost and the books know why", func(t *testing.T, ls []line, d *demand) []line {
		d.absent[tickID{"each-01", second(4).Unix()}] = "abandoned"
		i := at(t, ls, "e4", phaseStart)
		return slices.Delete(ls, i, i+1)
	}, nil},
	{"a start one nanosecond early", func(t *testing.T, ls []line, _ *demand) []line {
		ls[at(t, ls, "e4", phaseStart)].at = second(4).Add(-1)
		return ls
	}, []kind{early}},
	{"a start too late", func(t *testing.T, ls []line, _ *demand) []line {
		ls[at(t, ls, "e4", phaseStart)].at = second(6).Add(1)
		return ls
	}, []kind{late}},
	{"a late start in the gap", func(t *testing.T, ls []line, d *demand) []line {
		d.gap = window{second(3), second(5)}
		ls[at(t, ls, "e4", phaseStart)].at = second(9)
		return ls
	}, nil},
	{"a late start of an abandoned run", func(t *testing.T, ls []line, d *demand) []line {
		d.abandoned["e4"] = true
		ls[at(t, ls, "e4", phaseStart)].at = second(9)
		return ls
	}, nil},
	{"tokens against the order of writing", func(t *testing.T, ls []line, _ *demand) []line {
		a, b := at(t, ls, "e4", phaseStart), at(t, ls, "e5", phaseStart)
		ls[a], ls[b] = ls[b], ls[a]
		return ls
	}, []kind{regress}},
	{"tokens against the order of ticks", func(t *testing.T, ls []line, _ *demand) []line {
		a, b := at(t, ls, "e4", phaseStart), at(t, ls, "e5", phaseStart)
		ls[a].tick, ls[b].tick = ls[b].tick, ls[a].tick
		ls[a].at, ls[b].at = second(5), second(5)
		return ls
	}, []kind{regress}},
	{"the same token again", func(t *testing.T, ls []line, _ *demand) []line {
		ls[at(t, ls, "e5", phaseStart)].token = 1004
		return ls
	}, []kind{regress, regress}},
	{"a job nobody defined", func(_ *testing.T, ls []line, _ *demand) []line {
		ghost := ls[0]
		ghost.job = "ghost"
		return append(ls, ghost)
	}, []kind{phantom}},
	{"a second that the schedule leaves out", func(t *testing.T, ls []line, _ *demand) []line {
		odd := ls[at(t, ls, "s8", phaseStart)]
		odd.tick, odd.token, odd.run = second(9), 5009, "odd"
		return append(ls, odd)
	}, []kind{phantom}},
	{"a tick after the end", func(_ *testing.T, ls []line, _ *demand) []line {
		odd := ls[0]
		odd.tick, odd.token, odd.run, odd.at = second(10), 2000, "odd", second(10)
		return append(ls, odd)
	}, []kind{phantom}},
	{"an end of nothing", func(_ *testing.T, ls []line, _ *demand) []line {
		return slices.DeleteFunc(ls, func(l line) bool { return l.run == "s4" && l.phase == phaseStart })
	}, []kind{phantom, lost}},
	{"a start while the last run goes on", func(t *testing.T, ls []line, _ *demand) []line {
		a, b := at(t, ls, "s4", phaseEnd), at(t, ls, "s6", phaseStart)
		next := ls[b]
		return slices.Insert(slices.Delete(ls, b, b+1), a, next)
	}, []kind{together, phantom}}, // and then comes an end that belongs to no going run
	{"a start while an abandoned run goes on", func(_ *testing.T, ls []line, d *demand) []line {
		d.abandoned["s4"] = true
		return slices.DeleteFunc(ls, func(l line) bool { return l.run == "s4" && l.phase == phaseEnd })
	}, nil},
}

func TestPlantedFaults(t *testing.T) {
	for _, tt := range planted {
		t.Run(tt.name, func(t *testing.T) {
			d := goodDemand()
			f := examine(tt.spoil(t, goodLines(), &d), d)
			if got := kinds(f.violations); !slices.Equal(got, slices.Sorted(slices.Values(tt.want))) {
				t.Errorf("want %v, got %v:\n%v", tt.want, got, f.violations)
			}
		})
	}
}

func kinds(vs []violation) []kind {
	var out []kind
	for _, v := range vs {
		out = append(out, v.kind)
	}
	slices.Sort(out)
	return out
}

// TestStaleLineIsCounted writes a line of an abandoned run after that of the next one.
func TestStaleLineIsCounted(t *testing.T) {
	lines, d := goodLines(), goodDemand()
	i, j := at(t, lines, "s4", phaseEnd), at(t, lines, "s6", phaseStart)
	lines = slices.Insert(slices.Clone(lines), j+1, lines[i])
	lines = slices.Delete(lines, i, i+1)
	if got := kinds(examine(lines, d).violations); !slices.Equal(got, []kind{phantom, together}) {
		t.Errorf("of a run that nobody abandoned: %v", got)
	}
	d.abandoned["s4"] = true
	if f := examine(lines, d); len(f.violations) > 0 || f.stale != 1 {
		t.Errorf("stale %d, %v", f.stale, f.violations)
	}
}

func TestReadSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sink")
	if lines, bad, err := readSink(path); len(lines)+len(bad) > 0 || err != nil {
		t.Errorf("no file: %v %v %v", lines, bad, err)
	}
	good := "each-01 2026-03-01T12:00:00.000Z 1000 n1 e0 start 1772366400020000000 0/1 -"
	bad := []string{
		"", "each-01", good + " more", strings.Replace(good, "1000", "x", 1), strings.Replace(good, "2026-03", "2026-13", 1),
		strings.Replace(good, "start", "began", 1), strings.Replace(good, "0000000", "N", 1), good + good,
		strings.Replace(good, "0/1", "1/1", 1), strings.Replace(good, "0/1", "0", 1),
	}
	if err := os.WriteFile(path, []byte(good+"\n"+strings.Join(bad, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, wrong, err := readSink(path)
	want := line{no: 1, job: "each-01", tick: second(0), token: 1000, node: "n1", run: "e0", phase: phaseStart, at: second(0).Add(20 * time.Millisecond), shards: 1, label: "-"}
	if err != nil || len(lines) != 1 || lines[0] != want || len(wrong) != len(bad) {
		t.Errorf("%v\n%v\n%v", lines, wrong, err)
	}
	for _, v := range wrong {
		if v.kind != phantom {
			t.Errorf("%v", v)
		}
	}
}

// TestDueIsTheSchedule compares the brute idea of each schedule with the cron text's fields.
func TestDueIsTheSchedule(t *testing.T) {
	for _, tt := range []struct {
		job  job
		cron string
		want []int64
	}{
		{everySecond(1)[0], "* * * * * *", []int64{0, 1, 2, 3, 59, 60}},
		{slow("s"), "*/3 * * * * *", []int64{0, 3, 60}},
		{long(time.Unix(3, 0), time.Second), "3,33 * * * * *", []int64{3}},
		{long(time.Unix(60, 0), time.Second), "0,30 * * * * *", []int64{0, 60}},
		{long(time.Unix(59, 0), time.Second), "59,29 * * * * *", []int64{59}},
	} {
		got := map[int64]bool{}
		for _, s := range []int64{0, 1, 2, 3, 59, 60} {
			if tt.job.due(s) {
				got[s] = true
			}
		}
		if tt.job.schedule != tt.cron || !slices.Equal(slices.Sorted(maps.Keys(got)), tt.want) {
			t.Errorf("%s: due at %v, want %v", tt.job.schedule, got, tt.want)
		}
	}
}
