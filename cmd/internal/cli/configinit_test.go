package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/config"
)

// TestConfigInit writes a file once, which config validate finds good.
func TestConfigInit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	if code, stdout, stderr := call(nil, "", "config", "init", file); code != exitDone || stdout != "" || !strings.Contains(stderr, "config validate "+file) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(nil, "", "config", "validate", file); code != exitDone || !strings.Contains(stdout, ": valid, ") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(nil, "", "config", "init", file); code != exitRefused || !strings.Contains(stderr, "there is a file already; name another one\n") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file was overwritten: %s, %v", text, err)
	}
	if code, stdout, _ := call(nil, "", "config", "init", "-"); code != exitDone || stdout != config.ExampleText {
		t.Errorf("exit %d, %d bytes", code, len(stdout))
	}
	if code, _, stderr := call(nil, "", "config", "init", os.DevNull); code != exitDone {
		t.Errorf("a device: exit %d, %s", code, stderr)
	}
	if code, _, stderr := call(nil, "", "config", "init", filepath.Join(file, "below")); code != exitFailed || stderr == "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, stdout, _ := call(nil, "", "config", "schema"); code != exitDone || stdout != config.SchemaText {
		t.Errorf("exit %d, %d bytes", code, len(stdout))
	}
}
