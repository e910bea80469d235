package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/mask"
	"github.com/escapement/escapement/locking/redistest"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// TestUnwrittenData expects exit 1 and the reason when writing to stdout fails.
func TestUnwrittenData(t *testing.T) {
	for _, args := range []string{"version", "version -o json", "config validate ../../../config.yaml", "config validate -o json ../../../config.yaml",
		"config print --config ../../../config.yaml", "cron explain @hourly", "cron explain @hourly -o json"} {
		var words strings.Builder
		code := cmdtest.NewApp().Run(strings.Fields(args), strings.NewReader(""), cmdtest.FullDisk{}, &words, nil)
		if code != command.ExitFailed || !strings.Contains(words.String(), "no space left") {
			t.Errorf("%s: exit %d, %q", args, code, words.String())
		}
	}
}

// TestHelp goes to stdout, names every command and the exit codes, and no option for tests.
func TestHelp(t *testing.T) {
	code, stdout, stderr := cmdtest.Call(nil, "", "--help")
	for _, name := range []string{"config", "dev", "generations", "jobs", "ledger", "lock", "locks", "move", "nodes", "run", "runs", "version"} {
		if !strings.Contains(stdout, "\n  "+name+" ") {
			t.Errorf("no word about %s", name)
		}
	}
	if code != command.ExitDone || stderr != "" || !strings.Contains(stdout, "  7  the awaited run did not succeed, or not in time\n") {
		t.Errorf("exit %d, %q\n%s", code, stderr, stdout)
	}
	if _, stdout, _ := cmdtest.Call(nil, "", "jobs", "--help"); strings.Contains(stdout, "[command]") || strings.Count(stdout, "\n  escapement jobs") != 1 {
		t.Errorf("want one form of use:\n%s", stdout)
	}
	_, want, _ := cmdtest.Call(nil, "", "version")
	if code, stdout, _ := cmdtest.Call(nil, "", "--version"); code != command.ExitDone || stdout != want {
		t.Errorf("--version: exit %d, %q", code, stdout)
	}
}

// TestWordsAreHarmless keeps the words of a user from moving the terminal's cursor.
func TestWordsAreHarmless(t *testing.T) {
	if _, _, stderr := cmdtest.Call(nil, "", "jobs", "get\x1b[2J"); !strings.Contains(stderr, "\nusage: ") || strings.Contains(stderr, "\x1b") {
		t.Errorf("got %q", stderr)
	}
}

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

// Every command that is no group has examples, and they are valid command lines.
func TestExamples(t *testing.T) {
	each(cmdtest.NewApp().Root(), func(c *cobra.Command) {
		if c.HasSubCommands() {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no examples", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), `"`, "'"), " | ")
			words := shellWords(line)
			for strings.Contains(words[0], "=") {
				words = words[1:]
			}
			found, args, err := cmdtest.NewApp().Root().Find(words[1:])
			if err != nil || words[0] != "escapement" || found.CommandPath() != c.CommandPath() {
				t.Errorf("%s: %s is for %s, %v", c.CommandPath(), line, found.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

// each calls f for a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}

// TestAddressesAreMasked: each function that shows an address masks a possible password, also in a
// text that is no address.
func TestAddressesAreMasked(t *testing.T) {
	for _, text := range []string{
		"A:hunter2@", "u:hunter2@127.0.0.1:1", "hunter2@h", "x://hunter2@h", "http://u:hunter2@127.0.0.1:1/p", "https://u:hunter2@127.0.0.1:1?x=1",
		"https://127.0.0.1:1?token=hunter2", "http://hunter2@127.0.0.1:1", "htp:u:hunter2@h", "postgres://u:hunter2@a,b/db?password=hunter2", "http://u:hunter2 @h", "http://u:%zzhunter2@h",
	} {
		for name, show := range map[string]func(string) string{"server": config.MaskServer, "webhook": mask.URL, "API": opshttp.ShowAddress} {
			if got := show(text); strings.Contains(got, "hunter2") {
				t.Errorf("%s, %q: %s", name, text, got)
			}
		}
		if _, err := opshttp.NewClient(text, opshttp.ClientConfig{}); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("API client, %q: %v", text, err)
		}
		code, _, words := cmdtest.Call(nil, "", "health", "--api", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("health, %q: exit %d, %s", text, code, words)
		}
		code, _, words = cmdtest.Call(nil, "", "jobs", "list", "--api", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("jobs list, %q: exit %d, %s", text, code, words)
		}
		code, _, words = cmdtest.Call(nil, "", "jobs", "list", "--redis", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("jobs list in Redis, %q: exit %d, %s", text, code, words)
		}
	}
}

// TestPipesAreRefused: a named pipe in the place of any file that this program reads is refused,
// without a wait for its writer.
func TestPipesAreRefused(t *testing.T) {
	t.Parallel()
	const refused = ": is a named pipe, and no regular file"
	conf := testkit.Write(t, testkit.JobsOf("first"))
	dir := filepath.Dir(conf)
	pipe := filepath.Join(dir, "pipe")
	inJobs := testkit.Write(t, testkit.JobsOf("first"))
	fifo := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo(pipe)
	called := func(args ...string) func() error {
		return func() error {
			_, _, stderr := cmdtest.Call(nil, "", args...)
			return errors.New(stderr)
		}
	}
	for _, tt := range []struct {
		name, want string
		read       func() error
	}{
		{"jobs.d", fifo(filepath.Join(filepath.Dir(inJobs), config.JobsDir, "z.yaml")) + refused, func() error { _, err := config.Load(config.Source{File: inJobs}); return err }},
		{"config", pipe + refused, func() error { _, err := config.Load(config.Source{File: pipe}); return err }},
		{"secret", "ESCAPEMENT_REDIS_URL_FILE: " + pipe + refused, func() error {
			_, err := config.Load(config.Source{File: conf, Env: map[string]string{"ESCAPEMENT_REDIS_URL_FILE": pipe}})
			return err
		}},
		{"calendar", refused, func() error {
			calendar := fifo(filepath.Join(dir, "days.ics"))
			_, err := config.Load(config.Source{File: testkit.Write(t, "calendars: {de: ["+calendar+"]}\n"+testkit.JobsOf("first"))})
			return err
		}},
		{"stored jobs", refused, called("jobs", "apply", "-f", pipe)},
		{"backup", refused, called("restore", pipe, "--redis", "redis://"+cmdtest.ClosedPort(t))},
	} {
		ended := make(chan error, 1)
		go func() { ended <- tt.read() }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		case <-time.After(cmdtest.Within):
			t.Fatalf("%s: it waits for a writer", tt.name)
		}
	}
}

// The answer of each command in a sealed namespace: sealedRefused has the refused command lines,
// sealedServed the commands that are served or do not use the namespace.
var (
	sealedRefused = []string{
		"jobs run a", "jobs pause a --reason x", "jobs rewind a --to 3h", "jobs backfill a --from 2h --to 1h",
		"jobs put a --handler h --schedule @daily", "jobs apply -f FILE", "jobs delete a", "runs rerun RUN", "generations promote g", "restore BACKUP",
	}
	sealedServed = []string{
		"jobs list", "jobs get", "jobs graph", "jobs export", "jobs backfills", "jobs resume", "jobs backfill-cancel", "runs list",
		"runs get", "runs logs", "runs cancel", "nodes list", "nodes drain", "nodes resume", "locks list", "locks get", "locks release", "locks bootstrap", "generations list",
		"ledger verify", "doctor", "backup", "audit list", "lock", "notify test",
		"move plan", "move seal", "move copy", "move open", "move status", "move abort",
		"config validate", "config print", "config schema", "config init", "cron explain", "run", "dev", "health", "version", "completion", "help",
	}
)

// Every command that a sealed namespace refuses exits with 5 and names the move; every command is
// covered.
func TestSealedNamespaceRefuses(t *testing.T) {
	t.Parallel()
	job := jobs.Job{Name: "a", Schedule: "@hourly"}
	p := cmdtest.Plant(t, job)
	run := p.Granted(job, "{}")
	p.End("a", run, jobs.OutcomeFailed, "")
	backup := t.TempDir() + "/backup"
	p.Wants(command.ExitDone, "", "", "backup", backup)
	m := newMover(t, "redis://"+p.Server.Addr(), "redis://"+redistest.Start(t).Addr())
	m.wants(command.ExitDone, "nothing runs any more", "seal", "--drain", "0s")

	stored := testkit.Write(t, "jobs:\n  - {name: b, handler: h, schedule: \"@daily\"}\n")
	files := strings.NewReplacer("FILE", stored, "RUN", run, "BACKUP", backup)
	known := slices.Clone(sealedServed)
	for _, line := range sealedRefused {
		known = append(known, line)
		code, stdout, stderr := cmdtest.Call(p.Env, "", strings.Fields(files.Replace(line))...)
		if code != command.ExitRefused || !strings.Contains(stderr, "closed") && !strings.Contains(stderr, "seal") {
			t.Errorf("%s: exit %d, %s%s; want %d", line, code, stdout, stderr, command.ExitRefused)
		}
	}
	each(cmdtest.NewApp().Root(), func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if !c.HasSubCommands() && !slices.ContainsFunc(known, func(line string) bool { return line == path || strings.HasPrefix(line, path+" ") }) {
			t.Errorf("add %s to sealedRefused or sealedServed", path)
		}
	})
}
