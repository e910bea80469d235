package execjob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func info() jobs.RunInfo {
	return jobs.RunInfo{ID: "r1", Job: "report", Tick: time.Date(2026, 3, 1, 12, 5, 0, 7e6, time.UTC), Shard: 1, Shards: 4,
		Attempt: 2, Try: 3, Token: 1_770_000_000_000_001, Node: "a1", Trigger: jobs.TriggerCatchUp, Param: "eu",
		Payload: []byte(`{"a": "b c"}`)}
}

func shell(script string) Command { return Command{Command: []string{"sh", "-c", script}} }

func TestCommandSucceeds(t *testing.T) {
	run := jobs.NewRun(info())
	if err := New(shell("echo one; echo two >&2"))(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if got := string(run.Written()); got != "one\ntwo\n" {
		t.Errorf("output %q", got)
	}
}

func TestCommandSeesItsRun(t *testing.T) {
	t.Setenv("ESCAPEMENT_REDIS_URL", "redis://:secret@localhost")
	t.Setenv("ESCAPEMENT_JOB", "stale")
	t.Setenv("INHERITED", "from the node")
	c := shell("env; pwd; cat")
	c.Dir = t.TempDir()
	c.Env = map[string]string{"ADDED": "by = the job", "ESCAPEMENT_HTTP_LISTEN": "on purpose"}
	run := jobs.NewRun(info())
	if err := New(c)(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]int)
	for _, line := range strings.Split(string(run.Written()), "\n") {
		lines[line]++
	}
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ESCAPEMENT_JOB=report", "ESCAPEMENT_TICK=2026-03-01T12:05:00.007Z", "ESCAPEMENT_TICK_MS=1772366700007",
		"ESCAPEMENT_RUN=r1", "ESCAPEMENT_ATTEMPT=2", "ESCAPEMENT_TRY=3", "ESCAPEMENT_TOKEN=1770000000000001",
		"ESCAPEMENT_NODE=a1", "ESCAPEMENT_SHARD=1", "ESCAPEMENT_SHARDS=4", "ESCAPEMENT_PARAM=eu",
		`ESCAPEMENT_PAYLOAD={"a": "b c"}`, "ESCAPEMENT_TRIGGER=catch_up",
		"INHERITED=from the node", "ADDED=by = the job", "ESCAPEMENT_HTTP_LISTEN=on purpose", dir,
	} {
		if lines[want] != 1 {
			t.Errorf("%q is there %d times", want, lines[want])
		}
	}
	if out := string(run.Written()); strings.Contains(out, "secret") || strings.Contains(out, "stale") {
		t.Errorf("a setting of the node went through:\n%s", out)
	}
}

// A trace of the run's context replaces any other one; without one, the job's own or the node's is there.
func TestCommandSeesItsTrace(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	t.Setenv("TRACEPARENT", "the node's")
	for _, tt := range []struct{ trace, want string }{{trace, trace}, {"", "the job's"}, {trace + "\nX=y", "the job's"}} {
		c, run := shell(`echo "$TRACEPARENT"`), jobs.NewRun(info())
		c.Env = map[string]string{"TRACEPARENT": "the job's"}
		if err := New(c)(jobs.WithTraceparent(t.Context(), tt.trace), run); err != nil {
			t.Fatal(err)
		}
		if got := string(run.Written()); got != tt.want+"\n" {
			t.Errorf("trace %q: the command saw %q", tt.trace, got)
		}
	}
}

// PWD is the command's directory, not the node's: make, node and the like trust it.
func TestCommandSeesItsDirectory(t *testing.T) {
	t.Setenv("PWD", "/the/node's")
	dir := t.TempDir()
	t.Chdir(filepath.Dir(dir))
	for _, tt := range []struct {
		dir  string
		env  map[string]string
		want string
	}{
		{dir: dir, want: dir},
		{dir: filepath.Base(dir), want: dir},
		{dir: dir, env: map[string]string{"PWD": "/on/purpose"}, want: "/on/purpose"},
	} {
		run := jobs.NewRun(info())
		if err := New(Command{Command: []string{"env"}, Dir: tt.dir, Env: tt.env})(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if out := "\n" + string(run.Written()); !strings.Contains(out, "\nPWD="+tt.want+"\n") || strings.Count(out, "\nPWD=") != 1 {
			t.Errorf("in %s with %v:%swant PWD=%s", tt.dir, tt.env, out, tt.want)
		}
	}
}

func TestCommandFails(t *testing.T) {
	err := New(shell("echo working; echo 'disk is full' >&2; exit 3"))(t.Context(), jobs.NewRun(info()))
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("error %v", err)
	}
	if want := "command sh: exit status 3: working\ndisk is full"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if err := New(shell("printf 'a\\377b\\n \\n'; exit 1"))(t.Context(), jobs.NewRun(info())); err == nil || err.Error() != "command sh: exit status 1: a\uFFFDb" {
		t.Errorf("output that is no text: %v", err)
	}
	if err := New(shell("kill -9 $$"))(t.Context(), jobs.NewRun(info())); err == nil || err.Error() != "command sh: signal: killed" {
		t.Errorf("a command that was killed: %v", err)
	}
}

func TestOutputKeepsItsEnd(t *testing.T) {
	run := jobs.NewRun(info())
	err := New(shell(`i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; exit 1`))(t.Context(), run)
	out := string(run.Written())
	if len(out) != jobs.MaxOutput || !strings.HasSuffix(out, "line 19998\nline 19999\n") {
		t.Errorf("%d bytes ending in %q", len(out), out[max(0, len(out)-30):])
	}
	text := strings.TrimPrefix(err.Error(), "command sh: exit status 1: ")
	if len(text) > maxQuoted || len(text) < maxQuoted-20 || !strings.HasPrefix(text, "line 19") || !strings.HasSuffix(text, "line 19999") {
		t.Errorf("error quotes %d bytes: %q", len(text), text)
	}
}

// A command that cannot be started: the error names the missing file, which is not always the
// command.
func TestCommandCannotStart(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name    string
		command Command
		want    string
	}{
		{"no such file", Command{Command: []string{"./no-such-program"}}, "no such file or directory"},
		{"not in PATH", Command{Command: []string{"no-such-program"}}, "executable file not found in $PATH"},
		{"no directory", Command{Command: []string{"pwd"}, Dir: "/no/such/dir"}, "command pwd not started: its directory /no/such/dir: no such file or directory"},
		{"a file as directory", Command{Command: []string{"pwd"}, Dir: script("file", "", 0o600)}, "its directory " + filepath.Join(dir, "file") + ": not a directory"},
		{"no interpreter", Command{Command: []string{script("a", "#!/no/such/python3 -u\n", 0o700)}}, `/a is there, and "/no/such/python3 -u", which its first line names, is not: no such file`},
		{"line ends of Windows", Command{Command: []string{"./b"}, Dir: filepath.Dir(script("b", "#!/bin/sh\r\ntrue\r\n", 0o700))}, `/b is there, and "/bin/sh\r", which its first line names with the line end of Windows, is not`},
		{"no first line", Command{Command: []string{script("c", "true\n", 0o700)}}, "/c is no program of this machine, and no script with #! in its first line"},
		{"not executable", Command{Command: []string{script("d", "#!/bin/sh\n", 0o600)}}, "permission denied"},
		{"not executable there", Command{Command: []string{script("e", "#!/bin/sh\n", 0o600)}, Dir: dir}, "this user may not execute " + filepath.Join(dir, "e") + ", or not enter the directory " + dir + ": permission denied"},
		{"much too long", Command{Command: append([]string{"true"}, strings.Fields(strings.Repeat(strings.Repeat("x", 100_000)+" ", 80))...)}, "its arguments and variables are too long together"},
	} {
		run := jobs.NewRun(info())
		err := New(tt.command)(t.Context(), run)
		if err == nil || !strings.HasPrefix(err.Error(), "command "+tt.command.Command[0]+" not started: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.300v, want %q", tt.name, err, tt.want)
		}
		if run.Written() != nil || jobs.IsPermanent(err) || jobs.IsNodeFault(err) {
			t.Errorf("%s: output %q, permanent %t, the node's %t", tt.name, run.Written(), jobs.IsPermanent(err), jobs.IsNodeFault(err))
		}
	}
}

// A resource that the machine lacks is the node's fault, and not the command's.
func TestNodeFault(t *testing.T) {
	for _, of := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC} {
		cmd := exec.Command("true")
		if err := whyNotStarted(cmd, &os.PathError{Op: "fork/exec", Path: cmd.Path, Err: of}); !jobs.IsNodeFault(err) || !errors.Is(err, of) {
			t.Errorf("%v: %v", of, err)
		}
	}
	if err := whyNotStarted(exec.Command("true"), fs.ErrNotExist); jobs.IsNodeFault(err) {
		t.Error("a file that is not there is the node's fault")
	}
}

func TestVariablesThatNoProcessCanTake(t *testing.T) {
	for words, edit := range map[string]func(*jobs.RunInfo){
		"ESCAPEMENT_PAYLOAD of 131072 bytes does not fit": func(i *jobs.RunInfo) { i.Payload = make([]byte, 128<<10) },
		"ESCAPEMENT_PAYLOAD holds a NUL":                  func(i *jobs.RunInfo) { i.Payload = []byte("a\x00b") },
		"ESCAPEMENT_PARAM holds a NUL":                    func(i *jobs.RunInfo) { i.Param = "\x00" },
	} {
		in := info()
		edit(&in)
		if err := New(shell("true"))(t.Context(), jobs.NewRun(in)); err == nil || !strings.Contains(err.Error(), words) || !jobs.IsPermanent(err) {
			t.Errorf("error %v, want %q in it and no retry", err, words)
		}
	}
	in := info()
	in.Payload = []byte(strings.Repeat("x", maxVariable-len("ESCAPEMENT_PAYLOAD")))
	if err := New(shell("true"))(t.Context(), jobs.NewRun(in)); err != nil {
		t.Errorf("the longest payload: %v", err)
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", maxVariable)
	for _, c := range []struct {
		command Command
		want    string
	}{
		{shell("echo hello"), ""},
		{Command{Command: []string{"true"}, Dir: "/tmp", Env: map[string]string{"A": "", "ESCAPEMENT_LOG_LEVEL": "debug"}}, ""},
		{Command{}, "command: is empty"},
		{Command{Command: []string{"a", "b\x00"}}, "command: holds a NUL"},
		{Command{Command: []string{"a"}, Dir: "\x00"}, "dir: holds a NUL"},
		{Command{Command: []string{"a"}, Env: map[string]string{"": "x"}}, `env."": is not a name`},
		{Command{Command: []string{"a"}, Env: map[string]string{"A=hunter2": ""}}, `env."A=...": is not a name`},
		{Command{Command: []string{"a"}, Env: map[string]string{"ESCAPEMENT_TOKEN": "1"}}, "env.ESCAPEMENT_TOKEN: is set by the run"},
		{Command{Command: []string{"a"}, Env: map[string]string{"A": long}}, "env.A: is longer than"},
		{Command{Command: []string{"a"}, Env: map[string]string{"A": "\x00"}}, "env.A: holds a NUL"},
	} {
		err := c.command.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%q: %v", c.want, err)
		}
		var field *jobs.FieldError
		if err != nil && !errors.As(err, &field) {
			t.Errorf("%q: no FieldError in %T", c.want, err)
		}
	}
	all := Command{Dir: "\x00", Env: map[string]string{"A": "\x00", "B=": ""}}.Validate()
	if n := strings.Count(all.Error(), "\n"); n != 3 {
		t.Errorf("not every fault at once:\n%v", all)
	}
	if err := New(Command{})(t.Context(), jobs.NewRun(info())); !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "command: is empty") {
		t.Errorf("running an empty command: %v", err)
	}
}

func TestNewKeepsItsOwnCopy(t *testing.T) {
	c := Command{Command: []string{"sh", "-c", `echo "$A"`}, Env: map[string]string{"A": "first"}}
	f := New(c)
	c.Command[2], c.Env["A"] = "exit 9", "second"
	run := jobs.NewRun(info())
	if err := f(t.Context(), run); err != nil || string(run.Written()) != "first\n" {
		t.Errorf("output %q, error %v", run.Written(), err)
	}
}

func TestContextEndedBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the lease is lost")
	cancel(cause)
	err := New(shell("touch "+file))(ctx, jobs.NewRun(info()))
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for in, want := range map[string]string{
		"\n \n": "", "0123456789": "0123456789", "aa\n0123456789": "0123456789", "first\nsecond\nend": "second\nend", "xäääääx": "ääääx",
	} {
		if got := lastLines([]byte(in), 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
