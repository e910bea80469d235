package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestVariables sets some settings of each kind by variables; TestEverySettingIsReadable covers all
// settings.
func TestVariables(t *testing.T) {
	l, err := Load(Source{Env: map[string]string{
		"ESCAPEMENT_NAMESPACE": "n", "ESCAPEMENT_REDIS_ADDRS": "", "ESCAPEMENT_REDIS_PARTITIONS": "4", "ESCAPEMENT_NODE_LABELS": "zone=a, disk=x=y",
		"ESCAPEMENT_NODE_GRACE": "1s", "ESCAPEMENT_HTTP_LISTEN": "", "ESCAPEMENT_DEFAULTS_OVERLAP": "queue",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Namespace, want.Redis.Addrs, want.Redis.Partitions, want.Node.Labels = "n", []string{}, 4, map[string]string{"zone": "a", "disk": "x=y"}
	want.Node.Grace, want.HTTP.Listen, want.Defaults.Overlap = time.Second, "", "queue"
	if !reflect.DeepEqual(l.Config, want) {
		t.Errorf("got %+v\nwant %+v", l.Config, want)
	}
}

// TestSecretFromFile reads a setting from the file that a variable names. Faults of such a file are
// in testdata/cli.
func TestSecretFromFile(t *testing.T) {
	dir := t.TempDir()
	secret, huge := filepath.Join(dir, "secret"), filepath.Join(dir, "huge")
	for file, text := range map[string]string{secret: "redis://:hunter2@r:1\r\n", huge: strings.Repeat("x", maxSecret+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Load(Source{Env: map[string]string{"ESCAPEMENT_REDIS_URL_FILE": secret}})
	if err != nil || l.Redis.URL != "redis://:hunter2@r:1" {
		t.Errorf("got %v", err)
	}
	want := "ESCAPEMENT_REDIS_URL_FILE: " + huge + ": is larger than 64 KiB; name the right file, or shorten this one"
	if _, err := Load(Source{Env: map[string]string{"ESCAPEMENT_REDIS_URL_FILE": huge}}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// Variables of other programs begin as ours do: a job's command has its run's variables, and a pod
// the variables of services.
func TestVariablesOfOthers(t *testing.T) {
	env := map[string]string{}
	for _, name := range []string{"JOB", "TICK_MS", "TOKEN", "LOCK", "AUTHOR", "MOVE_TO_FILE", "SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT",
		"PORT_8080_TCP", "CONSOLE_SERVICE_HOST", "CONSOLE_PORT_8080_TCP_ADDR"} {
		env[EnvPrefix+name] = "x"
	}
	if _, err := Load(Source{Env: env}); err != nil {
		t.Error(err)
	}
}
