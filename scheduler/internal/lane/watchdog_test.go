package lane

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// A job that stays due, and that no run holds, is trouble after ten seconds, and no longer when it
// is claimed. A job that a run holds, that has another definition here than is stored, or that this
// node may not claim, is none.
func TestWatchdog(t *testing.T) {
	const cursor = 946684800000
	for name, c := range map[string]struct {
		stored ledger.Entry
		mayNot bool
		says   string
	}{
		"stands still":      {ledger.Entry{Cursor: cursor, Digest: "d"}, false, "such as job since 2000-01-01T00:00:00Z"},
		"held":              {ledger.Entry{Cursor: cursor, Digest: "d", HolderRun: "run"}, false, ""},
		"claimed meanwhile": {ledger.Entry{Cursor: cursor + 1, Digest: "d"}, false, ""},
		"other definition":  {ledger.Entry{Cursor: cursor, Digest: "e"}, false, ""},
		"may not":           {ledger.Entry{Cursor: cursor, Digest: "d"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				read := func(context.Context, string) (query.Stored, error) { return query.Stored{Entry: c.stored}, nil }
				w := newWatchdog(func(string) (string, bool) { return "d", !c.mayNot }, read, slog.New(slog.NewTextHandler(&log, nil)))
				sweeps(t, w, 9*time.Second, "job")
				if err := w.err(); err != nil {
					t.Fatalf("after 9 s: %v", err)
				}
				sweeps(t, w, 12*time.Second, "job")
				if err := w.err(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Fatalf("after 21 s: %v, want %q", err, c.says)
				}
				sweeps(t, w, 16*time.Second)
				if err := w.err(); err != nil {
					t.Fatalf("it is due no more: %v", err)
				}
				if again := strings.Contains(log.String(), "no job stands still any more"); again != (c.says != "") {
					t.Errorf("logged %s", log.String())
				}
			})
		})
	}
}

// sweeps plays sweeps that find jobs late.
func sweeps(t *testing.T, w *watchdog, d time.Duration, late ...string) {
	var f query.ScanResult
	for _, job := range late {
		f.Late = append(f.Late, query.Late{Job: job, Cursor: 946684800000})
	}
	for range d / (250 * time.Millisecond) {
		w.sweep(t.Context(), f)
		time.Sleep(250 * time.Millisecond)
	}
}

// Jobs that runs hold hide none that stands still, however many they are.
func TestWatchdogLooksAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(_ context.Context, job string) (query.Stored, error) {
			e := ledger.Entry{Cursor: 946684800000, Digest: "d", HolderRun: "run"}
			if job == "z" {
				e.HolderRun = ""
			}
			return query.Stored{Entry: e}, nil
		}
		w := newWatchdog(func(string) (string, bool) { return "d", true }, read, slog.New(slog.DiscardHandler))
		late := []string{"z"}
		for i := range 2 * stallLooks {
			late = append(late, fmt.Sprint("held-", i))
		}
		said := false
		for range 8 {
			sweeps(t, w, 5*time.Second, late...)
			said = said || w.err() != nil
		}
		if !said {
			t.Error("a job that stands still was never looked at")
		}
	})
}

// A job that was due before Redis was away counts anew when Redis is back.
func TestWatchdogAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(context.Context, string) (query.Stored, error) {
			return query.Stored{Entry: ledger.Entry{Cursor: 946684800000, Digest: "d"}}, nil
		}
		w := newWatchdog(func(string) (string, bool) { return "d", true }, read, slog.New(slog.DiscardHandler))
		sweeps(t, w, 5*time.Second, "job")
		time.Sleep(time.Minute)
		sweeps(t, w, 5*time.Second, "job")
		if err := w.err(); err != nil {
			t.Error(err)
		}
	})
}

// A lease that was seen lapsed for three times its ttl, and is not reaped, is trouble, unless it is
// left alone.
func TestWatchdogOfLapsedLeases(t *testing.T) {
	for _, unknownFormat := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatchdog(func(string) (string, bool) { return "", false }, nil, slog.New(slog.DiscardHandler))
			lapsed := query.ScanResult{Lapsed: []ledger.Run{{ID: "r1", Job: "job", TTL: 15_000, Until: 100_000}}}
			for second := range 60 {
				if w.sweep(t.Context(), lapsed); unknownFormat {
					w.ignore("r1")
				}
				if err := w.err(); second < 44 && err != nil || unknownFormat && err != nil {
					t.Fatalf("after %d s: %v", second, err)
				}
				time.Sleep(time.Second)
			}
			if err := w.err(); (err == nil) != unknownFormat {
				t.Errorf("unknownFormat %v: %v", unknownFormat, err)
			}
		})
	}
}
