package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
)

// TestConfigInit writes a file once, which config validate finds good.
func TestConfigInit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	if code, stdout, stderr := cmdtest.Call(nil, "", "config", "init", file); code != command.ExitDone || stdout != "" || !strings.Contains(stderr, "config validate "+file) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := cmdtest.Call(nil, "", "config", "validate", file); code != command.ExitDone || !strings.Contains(stdout, ": valid, ") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := cmdtest.Call(nil, "", "config", "init", file); code != command.ExitRefused || !strings.Contains(stderr, "there is a file already; name another one\n") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file was overwritten: %s, %v", text, err)
	}
	if code, stdout, _ := cmdtest.Call(nil, "", "config", "init", "-"); code != command.ExitDone || stdout != config.ExampleText {
		t.Errorf("exit %d, %d bytes", code, len(stdout))
	}
	if code, _, stderr := cmdtest.Call(nil, "", "config", "init", os.DevNull); code != command.ExitDone {
		t.Errorf("a device: exit %d, %s", code, stderr)
	}
	if code, _, stderr := cmdtest.Call(nil, "", "config", "init", filepath.Join(file, "below")); code != command.ExitFailed || stderr == "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, stdout, _ := cmdtest.Call(nil, "", "config", "schema"); code != command.ExitDone || stdout != config.SchemaText {
		t.Errorf("exit %d, %d bytes", code, len(stdout))
	}
}

// TestConfigCommands covers the output of validate and print for a good and a bad file.
func TestConfigCommands(t *testing.T) {
	good, bad := "../../../config.yaml", "../config/testdata/words.yaml"
	code, stdout, stderr := cmdtest.Call(nil, "", "config", "validate", good)
	if code != command.ExitDone || stdout != "../../../config.yaml: valid, 8 jobs\n" || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ = cmdtest.Call(nil, "", "config", "validate", bad, "-o", "json")
	var v validation
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != command.ExitConfig || v.Valid || len(v.Faults) != 10 || v.Faults[0].Line != 1 {
		t.Errorf("exit %d, %v, %+v", code, err, v)
	}
	code, stdout, _ = cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=redis://u:hunter2@r:1"}, "", "config", "print", "--config", good, "-o", "json")
	var tree struct {
		Redis struct{ URL string }
		Node  struct {
			Weight int
			Grace  string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &tree); err != nil || code != command.ExitDone ||
		tree.Redis.URL != "redis://u:xxxxx@r:1" || tree.Node.Weight != 1 || tree.Node.Grace != "500ms" {
		t.Errorf("exit %d, %v, %+v", code, err, tree)
	}
}
