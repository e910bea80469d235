package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
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
