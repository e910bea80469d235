package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// call runs one command line in this process.
func call(env []string, stdin string, args ...string) (code int, stdout, stderr string) {
	var out strings.Builder
	var words heard // a locker logs beside what is said
	code = new(app).Run(args, strings.NewReader(stdin), &out, &words, env)
	return code, out.String(), words.String()
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestUsage wants exit 2, nothing on stdout, and the usage line of the nearest command on stderr.
func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want, usage string }{
		{"", "a command is missing: one of config, cron, dev, generations, jobs, ledger, lock, locks, move, nodes, run, runs, version", "escapement COMMAND"},
		{"frob", `"frob" is not one of its commands`, "escapement COMMAND"},
		{"nods", "did you mean nodes", "escapement COMMAND"},
		{"nods --help", "did you mean nodes", "escapement COMMAND"},
		{"jobs nope -h", `"nope" is not one of its commands: get, list`, "escapement jobs COMMAND"},
		{"help nods", "did you mean nodes", "escapement help [COMMAND]"},
		{"help jobs nope", `"nope" is not one of its commands: get, list`, "escapement help [COMMAND]"},
		{"doctor", "is not one of its commands", "escapement COMMAND"},
		{"completion bash", "is not one of its commands", "escapement COMMAND"},
		{"jobs", "a command is missing: one of get, list, pause, remove, resume, rewind, run", "escapement jobs COMMAND"},
		{"nodes drain", "NAME is missing", "escapement nodes drain NAME"},
		{"nodes undrain x", `"undrain" is not one of its commands: drain, list, resume; did you mean drain`, "escapement nodes COMMAND"},
		{"jobs get", "NAME is missing", "escapement jobs get NAME"},
		{"jobs get a b", `unexpected argument "b"`, "escapement jobs get NAME"},
		{"jobs list --frob", "unknown flag: --frob", "escapement jobs list"},
		{"jobs list -o jsn", "did you mean json", "escapement jobs list"},
		{"jobs run a --payload {", "not JSON", "escapement jobs run NAME"},
		{"runs list --outcome sucseeded", "did you mean succeeded", "escapement runs list"},
		{"runs list --since noon", "neither an instant", "escapement runs list"},
		{"runs list --limit -1", "negative", "escapement runs list"},
		{"dev --nodes 0", "outside 1 to 50", "escapement dev"},
		{"run --wait-for-redis=maybe", "invalid argument", "escapement run"},
		{"run --config=", "name it with --config FILE", "escapement run"},
		{"config validate", "FILE is missing", "escapement config validate FILE"},
		{"generations", "a command is missing: one of list, promote", "escapement generations COMMAND"},
		{"generations promote", "NAME is missing", "escapement generations promote NAME"},
		{"move", "a command is missing: one of abort, copy, open, plan, seal, status", "escapement move COMMAND"},
		{"move stauts", "did you mean status", "escapement move COMMAND"},
		{"move plan", "--to is missing; name the Redis to move to with it, ESCAPEMENT_MOVE_TO, or redis.next", "escapement move plan"},
		{"move seal --to redis://h --drain 1", "1 has no unit", "escapement move seal"},
		{"move seal --to redis://h --drain -1s", "outside 0s to 24h", "escapement move seal"},
		{"move copy --to redis://h --partitions 1025", "outside 0 to 1024", "escapement move copy"},
		{"move open now", `unexpected argument "now"`, "escapement move open"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			code, stdout, stderr := call([]string{"ESCAPEMENT_REDIS_URL=redis://" + closedPort(t)}, "", strings.Fields(tt.args)...)
			if code != exitUsage || stdout != "" {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			if !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "\nusage: "+tt.usage) {
				t.Errorf("stderr is\n%swant %q and the usage of %q", stderr, tt.want, tt.usage)
			}
		})
	}
}

// TestBadConfig wants exit 3 and every fault, before anything is connected: the
// Redis named does not exist, and would be exit 6.
func TestBadConfig(t *testing.T) {
	file := write(t, "redis: {confirm: all}\nnod: {}\n")
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + closedPort(t), "ESCAPEMENT_NODE_WEIGHT=0"}
	want := file + ":1: redis.confirm: \"all\" is not one of none, replicas\n" +
		file + ":2: nod: unknown key; did you mean node\n" +
		"ESCAPEMENT_NODE_WEIGHT: 0 is outside 1 to 1000\n"
	for _, args := range [][]string{
		{"run", "--config", file}, {"dev", "--config", file}, {"config", "validate", file}, {"jobs", "list", "--config", file},
		{"config", "print", "--config", file},
	} {
		code, stdout, stderr := call(env, "", args...)
		if code != exitConfig || stdout != "" || stderr != want {
			t.Errorf("%v: exit %d, stdout %q, stderr\n%swant\n%s", args, code, stdout, stderr, want)
		}
	}
}

// TestConfigCommands covers what validate and print say of a good and a bad file.
func TestConfigCommands(t *testing.T) {
	good, bad := "../../config.yaml", "testdata/config/words.yaml"
	code, stdout, stderr := call(nil, "", "config", "validate", good)
	if code != exitDone || stdout != "../../config.yaml: valid, 6 jobs\n" || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ = call(nil, "", "config", "validate", bad, "-o", "json")
	var v verdict
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != exitConfig || v.Valid || len(v.Faults) != 10 || v.Faults[0].Line != 1 {
		t.Errorf("exit %d, %v, %+v", code, err, v)
	}
	code, stdout, _ = call([]string{"ESCAPEMENT_REDIS_URL=redis://u:hunter2@r:1"}, "", "config", "print", "--config", good, "-o", "json")
	var tree struct {
		Redis struct{ URL string }
		Node  struct {
			Weight int
			Grace  string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &tree); err != nil || code != exitDone ||
		tree.Redis.URL != "redis://u:xxxxx@r:1" || tree.Node.Weight != 1 || tree.Node.Grace != "500ms" {
		t.Errorf("exit %d, %v, %+v", code, err, tree)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestUnwrittenData wants exit 1 and the reason when stdout takes nothing.
func TestUnwrittenData(t *testing.T) {
	for _, args := range []string{"version", "version -o json", "config validate ../../config.yaml", "config validate -o json ../../config.yaml",
		"config print --config ../../config.yaml", "cron explain @hourly", "cron explain @hourly -o json"} {
		var words strings.Builder
		code := new(app).Run(strings.Fields(args), strings.NewReader(""), fullDisk{}, &words, nil)
		if code != exitFailed || !strings.Contains(words.String(), "no space left") {
			t.Errorf("%s: exit %d, %q", args, code, words.String())
		}
	}
}

// TestNoRedisNamed is a fault of the configuration and says the next step.
func TestNoRedisNamed(t *testing.T) {
	for _, args := range [][]string{{"run", "--config", "../../config.yaml"}, {"jobs", "list", "--config", ""}, {"nodes", "list", "--redis", ""}} {
		code, _, stderr := call(nil, "", args...)
		if code != exitConfig || !strings.Contains(stderr, "is empty: write redis://HOST:6379/0") {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}

// TestUnreachable wants exit 6 and what was tried, never the password.
func TestUnreachable(t *testing.T) {
	addr := closedPort(t)
	env := []string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_REDIS_URL=redis://u:hunter2@" + addr}
	for _, args := range [][]string{
		{"run", "--config", "../../config.yaml"}, {"dev", "--config", "../../config.yaml"}, {"jobs", "list"}, {"jobs", "get", "a"},
		{"jobs", "run", "a"}, {"runs", "list"}, {"runs", "get", "a"}, {"nodes", "list"}, {"nodes", "drain", "a"}, {"nodes", "resume", "a"}, {"ledger", "verify"},
		{"jobs", "pause", "a", "--reason", "x", "--until", "+1h"}, {"jobs", "resume", "a"}, {"jobs", "remove", "a"},
		{"jobs", "rewind", "a", "--to", "-1h"}, {"runs", "cancel", "a"}, {"runs", "rerun", "a"},
		{"generations", "list"}, {"generations", "promote", "a"},
	} {
		code, _, stderr := call(env, "", args...)
		if code != exitUnreachable || !strings.Contains(stderr, "cannot reach Redis at "+addr) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}

// TestHelp goes to stdout and names every command.
func TestHelp(t *testing.T) {
	code, stdout, stderr := call(nil, "", "--help")
	for _, name := range []string{"config", "dev", "generations", "jobs", "ledger", "lock", "locks", "move", "nodes", "run", "runs", "version"} {
		if !strings.Contains(stdout, "\n  "+name+" ") {
			t.Errorf("no word about %s", name)
		}
	}
	if code != exitDone || stderr != "" {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if _, stdout, _ := call(nil, "", "run", "--help"); strings.Contains(stdout, "clock-offset") {
		t.Error("an option for tests is shown")
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := call(nil, "", "version", "-o", "json")
	var b build
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitDone || b.Version == "" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("exit %d, %v, %q", code, err, stdout)
	}
	if code, stdout, _ := call(nil, "", "version"); code != exitDone || !strings.HasPrefix(stdout, "escapement ") {
		t.Errorf("exit %d, %q", code, stdout)
	}
}

func TestPayload(t *testing.T) {
	a := &app{stdin: strings.NewReader(" {\"a\": 1}\n")}
	for text, want := range map[string]string{"": "", `{"b": [2]}`: `{"b": [2]}`, "-": `{"a": 1}`} {
		if got, err := a.payload(text); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	huge := `"` + strings.Repeat("x", maxPayload) + `"`
	a.stdin = strings.NewReader(huge)
	for _, text := range []string{"hello", huge, "-"} {
		if _, err := a.payload(text); exitCode(err) != exitUsage {
			t.Errorf("%.20s: got %v", text, err)
		}
	}
}

func TestParseSince(t *testing.T) {
	for text, want := range map[string]when{
		"": {}, "10m": {from: -10 * time.Minute, relative: true}, "2026-01-02T15:04:05.5+01:00": {at: time.Date(2026, 1, 2, 14, 4, 5, 5e8, time.UTC)},
	} {
		if got, err := parseSince(text); err != nil || !got.at.Equal(want.at) || got.from != want.from || got.relative != want.relative {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestTable keeps what a job says from moving the columns or the terminal's cursor.
func TestTable(t *testing.T) {
	var out strings.Builder
	w := newTable(&out, "A", "B")
	w.row("", "x\ty\nz\x1b[31m\u009b")
	w.row("e", "\u202evil\u2066\u200f ünïcode עברית 👩\u200d🚀")
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "A  B\n-  x\\x09y\\x0az\\x1b[31m\\x9b\ne  \\u202evil\\u2066\\u200f ünïcode עברית 👩\u200d🚀\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if got := firstLine("  one\ntwo", 10) + firstLine("äöüäöüäöü", 5); got != "oneäö..." {
		t.Errorf("got %q", got)
	}
	if err := printJSON(io.Discard, list[int](nil)); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(list[int](nil) == nil); got != "false" {
		t.Error("an empty list would be null in JSON")
	}
}
