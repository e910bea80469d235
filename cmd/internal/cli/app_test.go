package cli

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
)

// call runs one command line in this process.
func call(env []string, stdin string, args ...string) (code int, stdout, stderr string) {
	var out strings.Builder
	var words heard // a locker logs beside the messages
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

// TestConfigCommands covers the output of validate and print for a good and a bad file.
func TestConfigCommands(t *testing.T) {
	good, bad := "../../../config.yaml", "../config/testdata/words.yaml"
	code, stdout, stderr := call(nil, "", "config", "validate", good)
	if code != exitDone || stdout != "../../../config.yaml: valid, 8 jobs\n" || stderr != "" {
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

// TestUnwrittenData expects exit 1 and the reason when writing to stdout fails.
func TestUnwrittenData(t *testing.T) {
	for _, args := range []string{"version", "version -o json", "config validate ../../../config.yaml", "config validate -o json ../../../config.yaml",
		"config print --config ../../../config.yaml", "cron explain @hourly", "cron explain @hourly -o json"} {
		var words strings.Builder
		code := new(app).Run(strings.Fields(args), strings.NewReader(""), fullDisk{}, &words, nil)
		if code != exitFailed || !strings.Contains(words.String(), "no space left") {
			t.Errorf("%s: exit %d, %q", args, code, words.String())
		}
	}
}

// TestHelp goes to stdout, names every command and the exit codes, and no option for tests.
func TestHelp(t *testing.T) {
	code, stdout, stderr := call(nil, "", "--help")
	for _, name := range []string{"config", "dev", "generations", "jobs", "ledger", "lock", "locks", "move", "nodes", "run", "runs", "version"} {
		if !strings.Contains(stdout, "\n  "+name+" ") {
			t.Errorf("no word about %s", name)
		}
	}
	if code != exitDone || stderr != "" || !strings.Contains(stdout, "  7  the awaited run did not succeed, or not in time\n") {
		t.Errorf("exit %d, %q\n%s", code, stderr, stdout)
	}
	if _, stdout, _ := call(nil, "", "jobs", "--help"); strings.Contains(stdout, "[command]") || strings.Count(stdout, "\n  escapement jobs") != 1 {
		t.Errorf("want one form of use:\n%s", stdout)
	}
	_, want, _ := call(nil, "", "version")
	if code, stdout, _ := call(nil, "", "--version"); code != exitDone || stdout != want {
		t.Errorf("--version: exit %d, %q", code, stdout)
	}
}

// TestWordsAreHarmless keeps the words of a user from moving the terminal's cursor.
func TestWordsAreHarmless(t *testing.T) {
	if _, _, stderr := call(nil, "", "jobs", "get\x1b[2J"); !strings.Contains(stderr, "\nusage: ") || strings.Contains(stderr, "\x1b") {
		t.Errorf("got %q", stderr)
	}
}
