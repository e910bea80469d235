package figures

import (
	"path/filepath"
	"reflect"
	"testing"
)

func TestSummaries(t *testing.T) {
	row := func(who string, jobs, round int, t Tally) Row {
		return Row{Who: who, Title: who + "!", Jobs: jobs, Nodes: 3, Round: round, Tally: t, Survived: true,
			Commands: 40, Scripts: 20, NodesCPU: 0.5, RedisCPU: 0.25, Allocs: 60, NodeRSS: 3 << 20, RedisRSS: 5 << 20}
	}
	slow := row("a", 10, 2, Tally{Due: 20, Once: 9, Twice: 1, Missed: 10, Early: 1, Lags: Lags{3, 9, 90}})
	slow.Survived, slow.Commands = false, 80
	run := Run{Seconds: 2, Rounds: 2, Rows: []Row{
		row("a", 10, 1, Tally{Due: 20, Once: 20, Lags: Lags{1, 5, 7}}),
		row("b", 1, 1, Tally{Due: 2, Once: 2, Lags: Lags{1, 2, 3}}),
		slow,
		row("idle", 0, 1, Tally{}),
	}}
	want := []Summary{
		{Who: "idle", Title: "idle!", Nodes: 3, Rounds: 1, Survived: true, Commands: 20, Scripts: 10, NodesCPU: 0.25, RedisCPU: 0.125, Allocs: 30, NodeMiB: 3, RedisMiB: 5},
		{Who: "b", Title: "b!", Jobs: 1, Nodes: 3, Rounds: 1, Tally: Tally{Due: 2, Once: 2, Lags: Lags{1, 2, 3}}, Survived: true,
			Commands: 20, Scripts: 10, NodesCPU: 250, RedisCPU: 125, Allocs: 30, NodeMiB: 3, RedisMiB: 5},
		{Who: "a", Title: "a!", Jobs: 10, Nodes: 3, Rounds: 2, Tally: Tally{Due: 40, Once: 29, Twice: 1, Missed: 10, Early: 1, Lags: Lags{2, 7, 90}},
			Commands: 5, Scripts: 1.5, NodesCPU: 37.5, RedisCPU: 18.75, Allocs: 4.5, NodeMiB: 3, RedisMiB: 5},
	}
	got := run.Summaries()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("summary %d of %d: got\n%+v, want\n%+v", i, len(got), got[min(i, len(got)-1)], want[i])
		}
	}
	if cpu := want[2].CPU(); cpu != 56.25 {
		t.Errorf("CPU together %v, want 56.25", cpu)
	}
}

func TestMedian(t *testing.T) {
	for want, all := range map[float64][]float64{2: {3, 1, 2}, 2.5: {9, 1, 3, 2}, 7: {7}} {
		rows := make([]Row, len(all))
		for i, f := range all {
			rows[i].NodesCPU = f
		}
		if got := median(rows, func(r Row) float64 { return r.NodesCPU }); got != want {
			t.Errorf("of %v: %v, want %v", all, got, want)
		}
	}
}

func TestReadWhatWasWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "figures.json")
	want := Run{Commit: "c0ffee", Seconds: 5, Versions: map[string]string{"Go": "1"}, Rows: []Row{{Who: "a", Tally: Tally{Due: 3, Lags: Lags{P50: 1.5}}}}}
	if err := want.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that there is not is read")
	}
}

func TestDisturbedRoundsAreLeftOut(t *testing.T) {
	row := func(who string, p50, others float64) Row {
		return Row{Who: who, Jobs: 1, Tally: Tally{Due: 1, Once: 1, Lags: Lags{P50: p50}}, OthersCPU: others, Survived: true}
	}
	r := Run{Seconds: 5, Machine: Machine{Cores: 2}, Rows: []Row{row("a", 1, 0.9), row("a", 90, 1.1), row("a", 3, 0), row("b", 7, 1.1), row("b", 9, 8)}}
	got := r.Summaries()
	if a := got[0]; a.P50 != 2 || a.Rounds != 2 || a.Disturbed {
		t.Errorf("of a one round of three was disturbed: %+v", a)
	}
	if b := got[1]; b.P50 != 8 || b.Rounds != 2 || !b.Disturbed {
		t.Errorf("of b both were: %+v", b)
	}
}
