package page

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

var update = flag.Bool("update", false, "write testdata anew")

// sample is a run with all kinds of rows.
func sample() figures.Run {
	row := func(who, title string, jobs int, t figures.Tally) figures.Row {
		return figures.Row{Who: who, Title: title, Jobs: jobs, Nodes: 3, Round: 1, Tally: t, Survived: true,
			Commands: t.Once * 3, Scripts: t.Once / 2, NodesCPU: 0.2, RedisCPU: 0.1, NodeRSS: 30 << 20, Allocs: int64(t.Once) * 20, RedisRSS: 10 << 20}
	}
	lost := row("gocron", "gocron <lock>", 1000, figures.Tally{Due: 2000, Once: 10, Twice: 20, Missed: 1970, Lags: figures.Lags{P50: 300, P99: 900, Max: 990}})
	lost.Survived = false
	ours := row("ours", "Escapement", 1000, figures.Tally{Due: 2000, Once: 2000, Lags: figures.Lags{P50: 3.21, P99: 17.8, Max: 25}})
	ours.RedisRSS = 50 << 20
	ours.OthersCPU = 1 // of 4
	run := figures.Run{
		When: time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC), Commit: "c0ffee", Seconds: 2, Rounds: 1,
		Machine:  figures.Machine{System: "linux/amd64", Processor: "some processor", Cores: 2, MemoryMiB: 4096},
		Versions: map[string]string{"Go": "1.26.0", "github.com/hibiken/asynq": "v0.26.0"},
		Rows: []figures.Row{
			row("ours", "Escapement", 1, figures.Tally{Due: 2, Once: 2, Lags: figures.Lags{P50: 0.7, P99: 0.9, Max: 0.9}}),
			row("cron", "cron alone", 1, figures.Tally{Due: 2, Once: 2, Lags: figures.Lags{P50: 0.69, P99: 0.6, Max: 0.6}}),
			ours,
			row("cron", "cron alone", 1000, figures.Tally{Due: 2000, Once: 1999, Missed: 1, Early: 1, Lags: figures.Lags{P50: 2.7, P99: 4.8, Max: 5}}),
			lost,
			{Who: "asynq", Title: "asynq", Jobs: 1000, Nodes: 3, Problem: "it ended\nby | itself"},
			{Who: "idle", Title: "Escapement, idle", Nodes: 3, Commands: 142, Scripts: 25, Survived: true},
		},
	}
	return run
}

func TestSection(t *testing.T) {
	golden(t, "section.md", Section(sample()))
}

// golden compares with a file of testdata; go test ./page -update writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another one now:\n%s", name, got)
	}
}

func TestUpdate(t *testing.T) {
	docs := t.TempDir()
	name := filepath.Join(docs, document)
	if err := Update(docs, sample()); err == nil {
		t.Error("a document that there is not is written")
	}
	if err := os.WriteFile(name, []byte("# Before\n"+begin+"old\n"+end+"After.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the file of the first
		if err := Update(docs, sample()); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), []string{"-docs", docs}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if want := "# Before\n" + begin + Section(sample()) + end + "After.\n"; err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestReplaceNeedsMarkers(t *testing.T) {
	for _, text := range []string{"", begin, end + begin} {
		if got, err := replace(text, "x"); err == nil {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": short(0), "0.123": short(.1234), "1.23": short(1.234), "12.3": short(12.34), "1,235": short(1234.5),
		"1,000,007": thousands(1000007), "999": thousands(999),
		"0 %": share(0, 7), "100 %": share(7, 7), "< 0.01 %": share(1, 99999), "> 99.99 %": share(99998, 99999), "99.90 %": share(999, 1000), "50 %": share(1, 2),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
