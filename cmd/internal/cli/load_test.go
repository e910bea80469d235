package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// TestFaults reads every file of testdata/config and compares what is said about
// it with the .want beside it.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			got := "no fault\n"
			if _, err := load(source{file: file}); err != nil {
				got = strings.ReplaceAll(err.Error(), file, name+".yaml") + "\n"
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, "ter2") {
				t.Errorf("a password is told:\n%s", got)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".want", got)
		})
	}
}

// golden compares a text with a file, or rewrites the file under -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test -update rewrites it.\n--- got\n%s--- want\n%s", file, got, want)
	}
}

// TestHugeFile is a fault, and no failure. Other files that cannot be read are in testdata/cli.
func TestHugeFile(t *testing.T) {
	huge := write(t, strings.Repeat("# a comment\n", 2<<20/12))
	var wrong configError
	if _, err := load(source{file: huge}); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), huge+": larger than 1024 KiB") {
		t.Errorf("got %v", err)
	}
	if l, err := load(source{file: huge + ".none", optional: true}); err != nil || l.Namespace != "escapement" {
		t.Errorf("an absent file that is optional: got %v", err)
	}
}

// TestOrder lets each source win over the ones before it.
func TestOrder(t *testing.T) {
	file := write(t, "namespace: file\nnode: {weight: 2, grace: 1s}\nlog: {level: warn}\n")
	l, err := load(source{
		file:  file,
		env:   map[string]string{"ESCAPEMENT_NAMESPACE": "env", "ESCAPEMENT_NODE_GRACE": "2s"},
		flags: map[string]flagValue{"namespace": {"--namespace", "flag"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{l.Namespace, l.Node.Grace, l.Node.Weight, l.Log.Level, l.Log.Format}
	if want := "[flag 2s 2 warn auto]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestFaultsNameTheirSource wants the flag or the variable named, not a line of the file.
func TestFaultsNameTheirSource(t *testing.T) {
	file := write(t, "node: {max_skew: 2s}\nlog: {level: loud}\n")
	_, err := load(source{
		file: file,
		env: map[string]string{
			"ESCAPEMENT_REDIS_MODE": "ring", "ESCAPEMENT_NODE_WEIGHT": "much", "ESCAPEMENT_NODE_MAX_STEP": "1s",
			"ESCAPEMENT_NODE_LABELS": "a", "ESCAPEMENT_HTTP_LISTEN": "x",
		},
		flags: map[string]flagValue{"redis.url": {"--redis", "http://x"}, "namespace": {"--namespace", ""}},
	})
	if err == nil {
		t.Fatal("no fault")
	}
	golden(t, "testdata/sources.want", strings.ReplaceAll(err.Error(), file, "config.yaml")+"\n")
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// FuzzLoad wants an answer for any bytes, faults with a message, and a
// configuration that prints and reads back the same.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../../../config.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	file := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := load(source{file: file})
		if err == nil {
			sameAfterPrinting(t, file, l)
			return
		}
		var wrong configError
		if !errors.As(err, &wrong) || len(wrong) == 0 {
			t.Fatalf("not a configError: %v", err)
		}
		for _, w := range wrong {
			if w.msg == "" || strings.ContainsAny(w.String(), "\n\r") {
				t.Errorf("not one line: %q", w)
			}
		}
	})
}

// sameAfterPrinting prints a configuration and reads it again. What was masked is
// stays masked. file is overwritten.
func sameAfterPrinting(t *testing.T, file string, l *loaded) {
	t.Helper()
	var first, second bytes.Buffer
	if err := printConfig(&first, &l.Config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := load(source{file: file})
	if err != nil {
		t.Fatalf("what was printed is refused: %v\n%s", err, first.String())
	}
	if err := printConfig(&second, &again.Config); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("printed, read and printed again differs:\n%s\n%s", first.String(), second.String())
	}
}
