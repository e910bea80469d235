//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

func TestReadSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sink")
	if lines, bad, err := readSink(path); len(lines)+len(bad) > 0 || err != nil {
		t.Errorf("no file: %v %v %v", lines, bad, err)
	}
	good := "each-01 2026-03-01T12:00:00.000Z 1000 n1 e0 start 1772366400020000000"
	bad := []string{
		"", "each-01", good + " more", strings.Replace(good, "1000", "x", 1), strings.Replace(good, "2026-03", "2026-13", 1),
		strings.Replace(good, "start", "began", 1), strings.Replace(good, "0000000", "N", 1), good + good,
	}
	if err := os.WriteFile(path, []byte(good+"\n"+strings.Join(bad, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, wrong, err := readSink(path)
	want := line{no: 1, job: "each-01", tick: second(0), token: 1000, node: "n1", run: "e0", phase: judge.Start, at: second(0).Add(20 * time.Millisecond)}
	if err != nil || len(lines) != 1 || lines[0] != want || len(wrong) != len(bad) {
		t.Errorf("%v\n%v\n%v", lines, wrong, err)
	}
	for _, f := range wrong {
		if f.Kind != judge.KindPhantom {
			t.Errorf("%v", f)
		}
	}
}
