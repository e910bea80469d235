package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

// TestCommandLines runs the lines of testdata/cli/*.txt: arguments, with variables before them as
// in a shell, then the exit code and words that stderr must have, between bars. Stdout must be
// empty, or have the words of a last part "stdout: WORDS"; no output has a password. Lines "env
// NAME=VALUE" count for the lines below.
func TestCommandLines(t *testing.T) {
	files, err := filepath.Glob("testdata/cli/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	known := map[string]string{"CLOSED": cmdtest.ClosedPort(t), "LONG": strings.Repeat("x", 600)}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var env []string
			scan := bufio.NewScanner(f)
			for n := 1; scan.Scan(); n++ {
				line := os.Expand(scan.Text(), func(name string) string { return known[name] })
				if value, ok := strings.CutPrefix(line, "env "); ok {
					env = append(env, value)
				} else if line != "" && line[0] != '#' {
					runLine(t, fmt.Sprintf("%s:%d: %.200s", file, n, line), env, strings.Split(line, "|"))
				}
			}
			if err := scan.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func runLine(t *testing.T, where string, env, parts []string) {
	t.Helper()
	if len(parts) < 3 {
		t.Fatalf("%s: want ARGUMENTS | EXIT CODE | WORDS", where)
	}
	args := shellWords(parts[0])
	own := env[:len(env):len(env)]
	for len(args) > 0 && strings.HasPrefix(args[0], "ESCAPEMENT_") {
		own, args = append(own, args[0]), args[1:]
	}
	code, stdout, stderr := cmdtest.Call(own, "", args...)
	if words, ok := strings.CutPrefix(parts[len(parts)-1], " stdout: "); ok && strings.Contains(stdout, words) {
		parts, stdout = parts[:len(parts)-1], ""
	}
	if got := fmt.Sprint(code); got != strings.TrimSpace(parts[1]) || stdout != "" || strings.Contains(stderr, "hunter2") {
		t.Errorf("%s\nexit %s, stdout %q, stderr\n%s", where, got, stdout, stderr)
	}
	for _, words := range parts[2:] {
		if !strings.Contains(stderr, strings.TrimSpace(words)) {
			t.Errorf("%s\nwant %q in\n%s", where, strings.TrimSpace(words), stderr)
		}
	}
}

// shellWords splits at blanks outside single quotes.
func shellWords(text string) (words []string) {
	quoted, begun, word := false, false, ""
	for _, r := range text {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			begun, word = false, ""
		default:
			begun, word = true, word+string(r)
		}
	}
	if begun {
		words = append(words, word)
	}
	return words
}
