package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/locking/redistest"
)

// TestLockKeepsSecretsFromTheCommand: a command under a lock gets all variables except the secrets
// of this program.
func TestLockKeepsSecretsFromTheCommand(t *testing.T) {
	t.Parallel()
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: t.TempDir(), Args: []string{"--requirepass", "hunter2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hunter2hunter2hunter3"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "ESCAPEMENT_REDIS_URL=redis://:hunter2@" + server.Addr(), "ESCAPEMENT_REDIS_NEXT=redis://:hunter2@h",
		"ESCAPEMENT_HTTP_VIEWER_TOKEN=hunter2hunter2hunter2", "ESCAPEMENT_API_TOKEN=hunter2", "ESCAPEMENT_API=http://u:hunter2@h",
		"ESCAPEMENT_MOVE_FROM=redis://:hunter2@h", "ESCAPEMENT_MOVE_TO=redis://:hunter2@h", "ESCAPEMENT_HTTP_OPERATOR_TOKEN_FILE=" + file,
		"ESCAPEMENT_NAMESPACE=ours", "PASSWORD=theirs",
	}
	code, out, words := cmdtest.Call(env, "", "lock", "a", "--", "env")
	if code != command.ExitDone || strings.Contains(out, "hunter2") {
		t.Errorf("exit %d, %s: %s", code, words, out)
	}
	for _, want := range []string{"ESCAPEMENT_NAMESPACE=ours", "ESCAPEMENT_HTTP_OPERATOR_TOKEN_FILE=" + file, "PASSWORD=theirs", "ESCAPEMENT_LOCK=a", "ESCAPEMENT_TOKEN="} {
		if !strings.Contains(out, want) {
			t.Errorf("the command does not get %s: %s", want, out)
		}
	}
}

// TestSecretVariables finds a setting with a secret whose variable a command under a lock gets.
func TestSecretVariables(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ESCAPEMENT_REDIS_MODE": "cluster"}
	for _, l := range config.Leaves(new(config.Config)) {
		if l.Secret {
			env[l.Env()] = "redis://:hunter2@h"
		}
	}
	if got := withoutSecrets(env); len(env) < 8 || len(got) != 1 {
		t.Errorf("of %d variables there are %v", len(env), got)
	}
	plain := map[string]string{"ESCAPEMENT_REDIS_URL": "redis://h:6379/0", "ESCAPEMENT_LOCKS_SERVERS": "zk1:2181,zk2:2181", "ESCAPEMENT_API": "http://h:8080"}
	if got := withoutSecrets(plain); len(got) != len(plain) {
		t.Errorf("addresses without a secret are gone: %v", got)
	}
}
