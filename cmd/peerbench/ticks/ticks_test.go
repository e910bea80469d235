package ticks

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
	"github.com/escapement/escapement/cmd/peerbench/peers"
)

// TestMain is also the program of the measured processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildWord {
		if err := RunChild(context.Background(), os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, p := range peers.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o := options{span: 2 * time.Second, nodes: 2}
			m := measurement{p, 5, o.processes(p), 1}
			if p.Idle {
				m.jobs = 0
			}
			row, err := measure(t.Context(), o, m)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", row)
			if row.Due != 2*m.jobs || (p.Ours || p.NoRedis) && row.Once != row.Due {
				t.Errorf("of %d ticks %d ran once; want all of %d", row.Due, row.Once, 2*m.jobs)
			}
			if !row.Survived || row.NodesCPU <= 0 || (row.RedisRSS > 0) == p.NoRedis || (row.Commands > 0) == p.NoRedis {
				t.Errorf("nothing comes from nothing: %+v", row)
			}
		})
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-who", "cron,ours", "-jobs", "7,1000", "-for", "3s", "-rounds", "1", "-nodes", "2"})
	if err != nil || names(o.who) != "cron,ours" || !slices.Equal(o.jobs, []int{7, 1000}) || o.span != 3*time.Second || o.rounds != 1 || o.nodes != 2 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-nodes", "0"}, {"-rounds", "0"}, {"-for", "1500ms"}, {"-for", "0s"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	for _, bad := range []string{"", "0", "1,,2", "-1", "100001", "a"} {
		if _, err := numbers(bad); err == nil {
			t.Errorf("%q is taken as numbers", bad)
		}
		if _, err := contenders(bad); err == nil {
			t.Errorf("%q is taken as contenders", bad)
		}
	}
}

func TestPlan(t *testing.T) {
	o := options{who: peers.All(), jobs: []int{1, 1000}, nodes: 3, rounds: 2}
	var got []string
	for _, m := range o.plan() {
		if m.round == 2 {
			got = append(got, m.peer.Name+" "+strings.Repeat("|", m.nodes))
		}
	}
	want := []string{
		"ours |||", "cron |", "setnx |||", "gocron |||", "asynq |||",
		"ours |||", "cron |", "setnx |||", "gocron |||", "asynq |||", "ours10 ||||||||||",
		"idle |||",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the second round is\n%q, want\n%q", got, want)
	}
}

func TestParseInfo(t *testing.T) {
	s, err := parseInfo("# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:0.25\r\nused_cpu_sys_children:9\r\nused_memory_rss:4096\r\n" +
		"cmdstat_evalsha:calls=7,usec=1,usec_per_call=0.1\r\ncmdstat_fcall:calls=2,usec=1\r\ncmdstat_set:calls=30,usec=1\r\ncmdstat_client|setinfo:calls=1,usec=1\r\n")
	if want := (spent{cpu: 1.75, commands: 40, scripts: 9, rss: 4096}); err != nil || s != want {
		t.Errorf("got %+v, %v; want %+v", s, err, want)
	}
	for _, bad := range []string{"used_cpu_sys:x", "used_memory_rss:x", "cmdstat_set:calls=x"} {
		if _, err := parseInfo(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestParseStat(t *testing.T) {
	if got := parseStat("cpu  100 200 300 4000 5000 10 20 70 9 9\ncpu0 1 1 1 1 1 1 1 1\n"); got != 7 {
		t.Errorf("got %v s, want 7", got)
	}
	for _, unknown := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8 9"} {
		if got := parseStat(unknown); got != 0 {
			t.Errorf("%q: %v s", unknown, got)
		}
	}
}

func TestChildNotesWhatItIsToldTo(t *testing.T) {
	in, tell := io.Pipe()
	hear, out := io.Pipe()
	var c child
	done := make(chan error, 1)
	go func() { done <- c.listen(in, out) }()
	say := func(word string) {
		t.Helper()
		if _, err := io.WriteString(tell, word+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.seen
	}
	tick := time.Now().Truncate(time.Second)
	c.note(1, tick)
	say(wordBegin)
	for !seen() {
		time.Sleep(time.Millisecond)
	}
	c.note(2, tick)
	say(wordEnd)
	c.note(3, tick)                                              // late, and counted
	go func() { _, _ = io.WriteString(tell, wordReport+"\n") }() // the report is read meanwhile
	var r report
	if err := json.NewDecoder(bufio.NewReader(hear)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.note(4, tick)
	if len(r.Starts) != 2 || r.Starts[0].Job != 2 || r.Starts[1].Job != 3 || r.Starts[0].Tick != tick.Unix() || r.Starts[0].Lag < 0 || r.CPU < 0 {
		t.Errorf("the report is %+v", r)
	}
}

func TestVerdict(t *testing.T) {
	whole := figures.Tally{Due: 4, Once: 4}
	for _, tt := range []struct {
		tally   figures.Tally
		problem string
		broken  bool
	}{
		{whole, "", false},
		{figures.Tally{}, "", false}, // idle
		{whole, "it ended by itself", true},
		{figures.Tally{Due: 4, Once: 3, Missed: 1}, "", true},
		{figures.Tally{Due: 4, Once: 3, Twice: 1}, "", true},
		{figures.Tally{Due: 4, Once: 4, Early: 1}, "", true},
	} {
		row := figures.Row{Tally: tt.tally, Problem: tt.problem}
		if err := verdict(peers.Peer{Ours: true}, row, false); (err != nil) != tt.broken {
			t.Errorf("%+v: %v; want an error: %v", row, err, tt.broken)
		}
		if err := verdict(peers.Peer{Ours: true}, row, true); (err != nil) != (tt.broken && tt.tally.Missed == 0) {
			t.Errorf("%+v, disturbed: %v", row, err)
		}
		if err := verdict(peers.Peer{}, row, false); err != nil {
			t.Errorf("of others: %v", err)
		}
	}
}
