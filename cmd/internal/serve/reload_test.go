package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/metrics"
	"github.com/escapement/escapement/scheduler/ops"
)

// reloadable returns a reloader over one node that does not run, and its log.
func reloadable(t *testing.T, text string) (r *reloader, conf string, said *bytes.Buffer) {
	t.Helper()
	conf = testkit.Write(t, "redis: {url: 'redis://127.0.0.1:1'}\n"+text)
	l, err := config.Load(config.Source{File: conf})
	if err != nil {
		t.Fatal(err)
	}
	client, err := l.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	said = &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(said, nil))
	cfg := nodeConfig(l, log)
	cfg.Name = "a"
	slot, err := newNodeSlot(endpoint{client: client}, endpoint{}, l, cfg, metrics.New(metrics.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	r, end := newReloader([]*nodeSlot{slot}, log)
	t.Cleanup(func() { end(); slot.close() })
	return r, conf, said
}

// names are the jobs that the node has.
func (r *reloader) names() string {
	var list []string
	for _, j := range r.slots[0].jobs {
		list = append(list, j.Name)
	}
	return strings.Join(list, " ")
}

// TestLookWaitsForTheWriter reads a changing file once, when it has stopped changing.
func TestLookWaitsForTheWriter(t *testing.T) {
	t.Parallel()
	r, conf, said := reloadable(t, testkit.JobsOf("first"))
	r.check(t.Context())
	testkit.Put(t, conf, "jo")
	r.check(t.Context())
	testkit.Put(t, conf, testkit.JobsOf("second"))
	r.check(t.Context())
	if said.Len() > 0 || r.names() != "first" {
		t.Errorf("too early: %s %s", r.names(), said)
	}
	for range 3 {
		r.check(t.Context())
	}
	if r.names() != "second" || strings.Count(said.String(), "configuration reloaded") != 1 || strings.Contains(said.String(), "refused") {
		t.Errorf("jobs %s: %s", r.names(), said)
	}
	if err := r.slots[0].node.Load().Remove("first"); err == nil {
		t.Error("the node has the job still")
	}
	if err := r.slots[0].node.Load().Remove("second"); err != nil {
		t.Error(err)
	}
	if err := r.slots[0].start(); err != nil {
		t.Fatal(err)
	}
	if err := r.slots[0].node.Load().Remove("second"); err != nil {
		t.Errorf("the node that goes on after a move: %v", err)
	}
	testkit.Put(t, conf, "jobs: [")
	for range 4 {
		r.check(t.Context())
	}
	if err := errors.Join(os.Remove(conf), os.Mkdir(conf, 0o700)); err != nil { // a fault without a line and a setting
		t.Fatal(err)
	}
	if r.reload(t.Context()); !strings.Contains(said.String(), "directory") || strings.Contains(said.String(), "line=0") || strings.Contains(said.String(), `setting=""`) {
		t.Errorf("a directory: %s", said)
	}
	if r.names() != "second" || strings.Count(said.String(), "level=ERROR") != 2 {
		t.Errorf("after a broken file: jobs %s: %s", r.names(), said)
	}
}

// TestReloadChangesAllOrNothing expects files that this process cannot use without a restart to
// change nothing.
func TestReloadChangesAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"a guard, and no locks for it", testkit.JobsOf("second") + "  - {name: x, schedule: '@hourly', guard: redis, exec: {command: [x]}}\n", `line=3 setting=jobs[x].guard error="no job had a guard when this process started`},
		{"a ttl for another max_skew", "jobs:\n  - {name: second, schedule: '@hourly', ttl: 3s, exec: {command: [x]}}\n", "must be at least three times max_skew"},
		{"a name twice", testkit.JobsOf("second") + testkit.JobsOf("third")[6:] + testkit.JobsOf("second")[6:], `line=4 setting=jobs[2].name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, conf, said := reloadable(t, "node: {max_skew: 2s}\n"+testkit.JobsOf("first"))
			testkit.Put(t, conf, tt.text)
			r.reload(t.Context())
			if r.names() != "first" || !strings.Contains(said.String(), "level=ERROR") || !strings.Contains(said.String(), tt.want) {
				t.Errorf("jobs %s: %s", r.names(), said)
			}
			testkit.Put(t, conf, "node: {max_skew: 2s}\n"+testkit.JobsOf("third"))
			if r.reload(t.Context()); r.names() != "third" {
				t.Errorf("the next file is not read: jobs %s: %s", r.names(), said)
			}
		})
	}
}

// TestHangUp reloads at SIGHUP, and stops at a SIGHUP for a terminal that is gone.
func TestHangUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		has   []bool // whether there is a terminal, at each check
		stops bool
	}{{"no terminal", []bool{false, false}, false}, {"a terminal", []bool{true, true}, false}, {"one that is gone", []bool{true, false}, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, said := reloadable(t, testkit.JobsOf("first"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r.terminal = func() bool {
				has := tt.has[0]
				if tt.has = tt.has[1:]; len(tt.has) == 0 {
					tt.has = []bool{has}
				}
				return has
			}
			done := make(chan error, 1)
			go func() { done <- r.run(ctx) }()
			r.hangups <- syscall.SIGHUP
			if !tt.stops {
				r.hangups <- syscall.SIGHUP // taken when the first is through
				r.hangups <- syscall.SIGHUP
				cancel()
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if read := strings.Contains(said.String(), "configuration read again"); read == tt.stops {
				t.Errorf("stops %v: %s", tt.stops, said)
			}
		})
	}
}

// TestReloadOfFilesThatHang: hanging files do not delay a node's end. They are refused once, and
// one reader is left behind and waited for.
func TestReloadOfFilesThatHang(t *testing.T) {
	t.Parallel()
	r, conf, said := reloadable(t, testkit.JobsOf("first"))
	testkit.Put(t, conf, testkit.JobsOf("second"))
	synctest.Test(t, func(t *testing.T) {
		answer, calls := make(chan struct{}), new(atomic.Int32)
		defer func(asked chan os.Signal) { r.hangups = asked }(r.hangups)
		r.hangups = make(chan os.Signal) // of the bubble
		r.load = func(src config.Source) (*config.Loaded, error) {
			calls.Add(1)
			<-answer
			return config.Load(src)
		}
		r.reload(t.Context())
		for range 3 {
			r.check(t.Context())
		}
		if logged := said.String(); calls.Load() != 1 || strings.Count(logged, "level=ERROR") != 1 || !strings.Contains(logged, "does not answer within 1m0s") {
			t.Errorf("%d calls: %s", calls.Load(), logged)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.run(ctx) }()
		time.Sleep(2 * pollEvery) // of the bubble: a look is under way
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(answer)
		for range 3 {
			r.check(t.Context())
		}
	})
	if r.names() != "second" {
		t.Errorf("the files that answer are not read: jobs %s: %s", r.names(), said)
	}
}

// A node reads the dates again when the file of a calendar changes, also after a refused file.
func TestCalendarFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	job := "jobs:\n  - {name: first, schedule: '@daily', except: [free], exec: {command: [x]}}\n"
	r, conf, said := reloadable(t, "calendars: {free: [2026-12-24]}\n"+job)
	calendar := func(lines ...string) string {
		return "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n"
	}
	looks := func() {
		for range 3 {
			r.check(t.Context())
		}
	}
	except := func() string { return strings.Join(r.slots[0].jobs[0].Except, " ") }
	file := filepath.Join(filepath.Dir(conf), "free.ics")
	testkit.Put(t, conf, "redis: {url: 'redis://127.0.0.1:1'}\ncalendars: {free: [2026-12-24, free.ics]}\n"+job)
	looks()
	if !strings.Contains(said.String(), "there is no file") {
		t.Errorf("an absent file: %s", said)
	}
	testkit.Put(t, file, calendar("SUMMARY:x", "DTSTART:20270101", "RRULE:FREQ=HOURLY"))
	looks()
	if !strings.Contains(said.String(), "file="+file+" line=6") || except() != "2026-12-24" {
		t.Errorf("a bad file: except %s: %s", except(), said)
	}
	testkit.Put(t, file, calendar("DTSTART:20270101"))
	looks()
	if except() != "2026-12-24 2027-01-01" || strings.Count(said.String(), "configuration reloaded") != 1 {
		t.Errorf("a good file: except %s: %s", except(), said)
	}
	testkit.Put(t, file, calendar("DTSTART:20270101", "DTEND:20270103"))
	looks()
	if except() != "2026-12-24 2027-01-01..2027-01-02" || strings.Count(said.String(), "configuration reloaded") != 2 {
		t.Errorf("a changed file: except %s: %s", except(), said)
	}
}

// TestRefusedReloadOutlivesTheNode: after a move, the next node of the slot shows the refusal of
// the files that its predecessor read.
func TestRefusedReloadOutlivesTheNode(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	r, config, _ := reloadable(t, testkit.JobsOf("first"))
	slot := r.slots[0]
	slot.at = endpoint{client: redis.Client(t)} // the one before does not run
	testkit.Put(t, config, "jobs: [")
	r.reload(t.Context())
	if err := slot.start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- slot.run(ctx) }()
	client, err := ops.New(slot.at.client, "")
	if err != nil {
		t.Fatal(err)
	}
	cmdtest.Eventually(t, "the node says it", func() bool {
		nodes, _ := client.ListNodes(ctx)
		return len(nodes) == 1 && nodes[0].ConfigRefused != nil && strings.HasPrefix(nodes[0].ConfigRefused.Text, config+":") && !nodes[0].ConfigRefused.At.IsZero()
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
